// Masks that follow from the places of queries and keys become what attention knows of them: causal, a window, and how
// many keys each sequence has. So keys that no query sees are not read.
#include <algorithm>
#include <cmath>

#include "format/element.hpp"
#include "graph/rewrite/derive/batched_form.hpp"
#include "graph/rewrite/derive/key_conditions.hpp"
#include "graph/rewrite/derive/scores.hpp"
#include "graph/rewrite/pattern.hpp"
#include "graph/rewrite/replace.hpp"
#include "op/operands.hpp"

namespace cermet {
namespace {

using Operand = op::flash_attention::Operand;

/// Below this a key has no weight beside any other.
bool excludes(double score) { return score <= -1e30; }

class AttentionKeys {
 public:
  /// `any_score`: also where a key that is not seen has a score that is low, but finite.
  AttentionKeys(GraphEditor& editor, NodeId attention, bool any_score)
      : editor_(editor), attention_(attention), any_score_(any_score) {}

  bool run() {
    auto form = batched_form(editor_, axes_, attention_);
    if (!form || !form->mask) return false;
    form_ = std::move(*form);
    given_ = problem_of(editor_, attention_).attributes;
    const double masked_score = given_.number("masked_score");
    if (masked_score != -INFINITY && !(any_score_ && excludes(masked_score))) return false;
    if (given_.integer("window") != 0) return false;
    operands_ = attention_operands(editor_, attention_);
    if (operands_[Operand::lengths]) return false;
    KeyConditions conditions = key_conditions(editor_, axes_, *form_.mask, form_.sequences, form_.queries, form_.keys);
    others_ = std::move(conditions.others);
    const std::size_t all = conditions.linear.size() + others_.size();
    for (const bool first : {true, false})  // what says where a query stands comes before windows, which count from it
      for (LinearCondition& c : conditions.linear) {
        if (is_last_key(c) != first) continue;
        if (!(first ? takes_last_key(c) : takes_window(c))) others_.push_back(c.from);
      }
    if (all > 0 && others_.size() == all) return false;
    if (masked_score != -INFINITY && !others_.empty()) return false;  // a row may see none, and average all keys
    return apply();
  }

 private:
  bool one_query() const { return axes_.extent(form_.queries) == Dim(1); }
  /// Of one query, terms of its index are 0.
  bool is_last_key(const LinearCondition& c) const { return c.key == -1 && c.sign >= 0; }

  /// j <= i + constant + term, or without i.
  bool takes_last_key(const LinearCondition& c) {
    const Dim queries = axes_.extent(form_.queries), keys = axes_.extent(form_.keys);
    const bool causal = given_.flag("causal");
    if (is_placed_ || (c.query != 1 && c.query != 0)) return false;
    if (!c.term) {  // aligned at the last key
      const Dim offset = keys - queries;
      if (causal || c.query != (one_query() ? c.query : 1) || offset != Dim(c.constant)) return false;
      const bool sees_some = offset.is_constant() && offset.constant() >= 0;
      if (!sees_some && given_.text("empty_rows") != "zero") return false;
      causal_ = is_placed_ = true;
      offset_ = c.constant;
      return true;
    }
    if (causal || !queries.is_constant() || (c.query == 0 && !one_query())) return false;
    causal_ = is_placed_ = true;
    offset_ = c.constant;
    term_ = c.term;
    return true;
  }

  /// j >= i + offset + term - window + 1, of a query that stands at i + offset + term.
  bool takes_window(const LinearCondition& c) {
    const Dim keys = axes_.extent(form_.keys);
    if (!is_placed_ && one_query() && !c.term && keys.is_constant()) {  // which stands at the last key
      causal_ = is_placed_ = true;
      offset_ = keys.constant() - 1;
    }
    if (!causal_ || c.key != 1 || (c.query != -1 && !(one_query() && c.query == 0)) || window_ > 0) return false;
    const bool same_term = term_ ? c.term && c.sign == -1 && c.term->value == term_->value : !c.term;
    const std::int64_t window = c.constant + offset_ + 1;
    if (!same_term || window < 1) return false;
    window_ = window;
    return true;
  }

  bool apply() {
    Arranger arranger(editor_, axes_, attention_);
    std::optional<ValueId> mask;
    for (const IndexedValue& other : others_) {
      std::vector<AxisList> dims = form_.scores();
      const AxisList own = axes_.flat(other.dims);
      for (AxisList& list : dims)
        if (std::ranges::none_of(axes_.resolve(list), [&](Axis a) { return std::ranges::find(own, a) != own.end(); }))
          list.clear();
      const auto arranged = arranger.arrange(other, dims);
      if (!arranged) {
        arranger.undo();
        return false;
      }
      mask = mask ? arranger.apply(OpKind::logical_and, {*mask, *arranged}) : *arranged;
    }
    if (term_) {
      const auto lengths = lengths_of(arranger);
      if (!lengths) {
        arranger.undo();
        return false;
      }
      operands_[Operand::lengths] = *lengths;
    }
    operands_[Operand::mask] = mask.value_or(ValueId{});
    Attributes attributes = editor_.node(attention_).attributes;
    if (causal_) attributes = without(attributes, "causal");  // true is the default
    if (window_ > 0) attributes.set("window", window_);
    if (!mask) attributes = without(attributes, "masked_score");
    replace_attention(editor_, attention_, operands_, attributes);
    return true;
  }

  /// The last query stands at the last key. Layers share what they all compute of the same positions.
  std::optional<ValueId> lengths_of(Arranger& arranger) {
    const auto positions = arranger.arrange(*term_, {form_.sequences});
    if (!positions) return {};
    const std::int64_t more = offset_ + axes_.extent(form_.queries).constant();
    if (more == 0) return positions;
    const TensorType type{editor_.value(*positions).type.dtype, {}};
    std::vector<std::byte> bytes(size_of(type.dtype));
    format::store_element(bytes.data(), type.dtype, 0, static_cast<double>(more));
    const TensorData number(type, bytes);
    for (const Use use : editor_.uses(*positions)) {  // of another layer
      const Node& node = editor_.node(use.node);
      const TensorData* other = node.op == OpKind::add ? editor_.value(node.inputs[1]).data() : nullptr;
      if (other && use.operand == 0 && *other == number) return node.outputs[0];
    }
    return arranger.apply(OpKind::add, {*positions, editor_.add_constant("attention.more", number)});
  }

  GraphEditor& editor_;
  NodeId attention_;
  bool any_score_;
  Axes axes_;
  BatchedForm form_;
  Attributes given_;
  std::vector<ValueId> operands_;
  std::vector<IndexedValue> others_;
  bool causal_ = false, is_placed_ = false;
  std::int64_t offset_ = 0, window_ = 0;
  std::optional<IndexedValue> term_;
};

// ---- A bias of zeros and of scores that exclude a key ----

/// The truth value that chooses between 0 and such a score; `inverted`: 0 where it is false.
struct Choice {
  ValueId condition;
  bool inverted;
  double score;
};

std::optional<Choice> choice_of(const GraphEditor& editor, ValueId bias) {
  const auto maker = maker_of(editor, bias);
  if (!maker) return {};
  if (maker->op == OpKind::cast) return choice_of(editor, maker->inputs[0]);
  if (maker->op != OpKind::where) return {};
  const auto yes = uniform_of(editor, maker->inputs[1]), no = uniform_of(editor, maker->inputs[2]);
  if (!yes || !no || editor.value(maker->inputs[0]).type.rank() > editor.value(bias).type.rank()) return {};
  if (*yes == 0 && excludes(*no)) return Choice{maker->inputs[0], false, *no};
  if (*no == 0 && excludes(*yes)) return Choice{maker->inputs[0], true, *yes};
  return {};
}

/// Data of zeros and one such score as a mask.
std::optional<TensorData> mask_of(const Value& bias, double& least) {
  const TensorData* data = bias.data();
  if (!data || !dtypes::real.contains(bias.type.dtype)) return {};
  std::vector<std::byte> bytes(static_cast<std::size_t>(bias.type.elements().constant()));
  least = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const double score = format::load_element(data->bytes().data(), bias.type.dtype, static_cast<std::int64_t>(i));
    if (score != 0 && (!excludes(score) || (least != 0 && score != least))) return {};
    least = std::min(least, score);
    bytes[i] = std::byte{score == 0};
  }
  return TensorData({DType::boolean, bias.type.dims}, bytes);
}

}  // namespace

bool find_attention_keys(const Rule& rule, GraphEditor& editor, NodeId anchor) {
  return AttentionKeys(editor, anchor, rule.rounding == RoundingClass::fast).run();
}

bool mask_in_place_of_bias(const Rule&, GraphEditor& editor, NodeId anchor) {
  const Node node = editor.node(anchor);
  if (node.inputs.size() <= Operand::bias || !node.inputs[Operand::bias]) return false;
  std::vector<ValueId> operands = attention_operands(editor, anchor);
  ValueId& mask = operands[Operand::mask];
  if (mask) return false;
  const ValueId bias = node.inputs[Operand::bias];
  double masked_score = 0;
  if (auto data = mask_of(editor.value(bias), masked_score); data && masked_score != 0) {
    mask = editor.add_constant(editor.value(bias).name + ".mask", std::move(*data));
  } else if (const auto choice = choice_of(editor, bias)) {
    mask = choice->condition;
    masked_score = choice->score;
    if (choice->inverted) {
      Axes axes;
      mask = Arranger(editor, axes, anchor).apply(OpKind::logical_not, {mask});
    }
  } else {
    return false;
  }
  operands[Operand::bias] = {};
  Attributes attributes = node.attributes;
  if (std::isfinite(masked_score)) attributes.set("masked_score", masked_score);  // which rows that see no key average
  replace_attention(editor, anchor, operands, attributes);
  return true;
}

}  // namespace cermet
