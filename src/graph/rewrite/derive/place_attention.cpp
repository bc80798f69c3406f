// Which axes of a derived attention are sequences, heads, queries and groups of heads: those for which the fewest
// operands have to be transposed.
#include <algorithm>

#include "graph/rewrite/derive/attention_form.hpp"
#include "graph/rewrite/derive/attention_layouts.hpp"
#include "op/schema/operator.hpp"

namespace cermet {
namespace {

struct Roles {
  AxisList sequences, heads, groups, queries;
};

class Placement {
 public:
  Placement(GraphEditor& editor, Axes& axes, const AttentionForm& form)
      : editor_(editor), axes_(axes), form_(form), matmul_(editor.producer(form.result.value)) {
    for (AxisList* list : {&form_.batch, &form_.queries, &form_.keys, &form_.elements, &form_.value_elements})
      *list = axes_.resolve(*list);
    follow();
  }

  bool run() {
    if (!choose_roles()) return false;
    Arranger arranger(editor_, axes_, matmul_);
    const auto made = block(arranger);
    if (!made) {
      arranger.undo();
      return false;
    }
    const IndexedValue& result = results_[result_];
    const std::string name = editor_.value(result.value).name;
    editor_.replace_uses(result.value, *made);
    erase_unread(editor_, editor_.producer(result.value));
    editor_.rename(*made, name);
    return true;
  }

 private:
  /// What the views after the matmul make of its result, as long as nothing else reads it.
  void follow() {
    results_.push_back(form_.result);
    for (;;) {
      const ValueId id = results_.back().value;
      if (editor_.is_output(id) || editor_.uses(id).size() != 1) return;
      auto next = axes_.after(editor_, editor_.uses(id)[0].node, results_.back());
      if (!next) return;
      results_.push_back(std::move(*next));
    }
  }

  AxisList all_heads(const Roles& r) const { return joined_axes({&r.heads, &r.groups}); }

  /// The layout that needs no copy, or the first.
  Layout layout_of(const Roles& r, const IndexedValue& value, const AxisList& heads, const AxisList& tokens,
                   const AxisList& elements, std::size_t among = 3) const {
    const auto all = layouts(r.sequences, heads, tokens, elements);
    return layout_without_copy(axes_, value, all, among).value_or(all[0]);
  }
  Layout q_layout(const Roles& r) const {
    return layout_of(r, form_.scores.left, all_heads(r), r.queries, form_.elements);
  }
  Layout k_layout(const Roles& r) const {
    return layout_of(r, form_.scores.right, r.heads, form_.keys, form_.elements);
  }
  Layout v_layout(const Roles& r) const {
    return layout_of(r, form_.values, r.heads, form_.keys, form_.value_elements);
  }
  Layout o_layout(const Roles& r, const IndexedValue& result) const {
    return layout_of(r, result, all_heads(r), r.queries, form_.value_elements, 2);
  }

  /// A bias or mask has all axes of a dimension or none of them.
  std::vector<AxisList> dims_of(const Roles& r, const IndexedValue& value) const {
    const AxisList own = axes_.flat(value.dims);
    std::vector<AxisList> dims{r.sequences, all_heads(r), r.queries, form_.keys};
    for (AxisList& list : dims)
      if (std::ranges::none_of(list, [&](Axis a) { return std::ranges::find(own, a) != own.end(); })) list.clear();
    return dims;
  }

  /// Copies that these roles cost, and the last of the results that they give without one.
  int copies(const Roles& r, std::size_t& result) const {
    int count = is_copied(axes_, form_.scores.left, q_layout(r).dims) +
                is_copied(axes_, form_.scores.right, k_layout(r).dims) +
                is_copied(axes_, form_.values, v_layout(r).dims);
    for (const auto* terms : {&form_.scores.biases, &form_.scores.masks})
      for (const ScoreTerm& term : *terms) count += is_copied(axes_, term.value, dims_of(r, term.value));
    for (result = results_.size(); result-- > 0;)
      if (!is_copied(axes_, results_[result], o_layout(r, results_[result]).dims)) return count;
    result = 0;
    return count + 1;
  }

  bool choose_roles() {
    const std::size_t batch = form_.batch.size(), queries = form_.queries.size();
    if (batch + queries > 8) return false;
    int best = -1;
    for (unsigned choice = 0; choice < 1u << (batch + queries); ++choice) {
      Roles r;
      // Choices begin with all of the batch as heads and all others as queries.
      for (std::size_t i = 0; i < batch; ++i)
        ((choice >> i & 1u) != 0 ? r.sequences : r.heads).push_back(form_.batch[i]);
      for (std::size_t i = 0; i < queries; ++i)
        ((choice >> (batch + i) & 1u) != 0 ? r.groups : r.queries).push_back(form_.queries[i]);
      if (!is_size(all_heads(r)) || !is_size(r.heads)) continue;
      std::size_t result = 0;
      const int count = copies(r, result);
      if (best >= 0 && count >= best) continue;
      best = count;
      roles_ = std::move(r);
      result_ = result;
    }
    return best >= 0 && is_size(form_.elements) && is_size(form_.value_elements);
  }
  /// Whether the matmul has an operand of 32 bits.
  bool multiplies_floats() const {
    return std::ranges::any_of(editor_.node(matmul_).inputs,
                               [&](ValueId id) { return editor_.value(id).type.dtype == DType::f32; });
  }
  bool is_size(const AxisList& list) const {
    return axes_.extent(list).is_constant() && axes_.extent(list).constant() > 0;
  }

  std::optional<ValueId> block(Arranger& arranger) {
    const Layout q = q_layout(roles_), k = k_layout(roles_), v = v_layout(roles_),
                 o = o_layout(roles_, results_[result_]);
    const Scores& s = form_.scores;
    const auto queries = arranger.arrange(s.left, q.dims), keys = arranger.arrange(s.right, k.dims),
               values = arranger.arrange(form_.values, v.dims);
    if (!queries || !keys || !values) return {};
    std::optional<ValueId> bias, mask;
    for (const ScoreTerm& term : s.biases)
      if (!add_bias(arranger, term, bias)) return {};
    for (const ScoreTerm& term : s.masks)
      if (!add_mask(arranger, term, mask)) return {};
    Attributes attributes{{"scale", std::abs(s.factor)}, {"causal", false}};
    if (q.name != "bshd") attributes.set("q_layout", std::string(q.name));
    if (k.name != "bshd") attributes.set("k_layout", std::string(k.name));
    if (v.name != "bshd") attributes.set("v_layout", std::string(v.name));
    if (o.name != "bshd") attributes.set("o_layout", std::string(o.name));
    if (mask && std::isfinite(s.masked_score)) attributes.set("masked_score", s.masked_score);
    const DType type = editor_.value(form_.result.value).type.dtype;
    if (type != editor_.value(*queries).type.dtype) attributes.set("out_dtype", std::string(name_of(type)));
    // Weights that the graph multiplies unrounded stay so.
    if (byte_size(editor_.value(*values).type.dtype) == 2 && multiplies_floats()) attributes.set("strict", true);
    std::vector<ValueId> operands{s.factor < 0 ? arranger.apply(OpKind::neg, {*queries}) : *queries, *keys, *values};
    if (bias || mask)
      operands.insert(operands.end(), {ValueId{}, ValueId{}, ValueId{}, ValueId{}, bias.value_or(ValueId{})});
    if (mask) operands.push_back(*mask);
    const ValueId made = arranger.apply(OpKind::flash_attention, operands, attributes);
    return arranger.arrange({made, o.dims}, results_[result_].dims);
  }

  bool add_bias(Arranger& arranger, const ScoreTerm& term, std::optional<ValueId>& bias) {
    auto own = arranger.arrange(term.value, dims_of(roles_, term.value));
    if (!own) return false;
    const DType type = editor_.value(*own).type.dtype;
    if (term.factor != 1) {
      if (type != DType::f32) return false;
      const ValueId factor = editor_.add_constant(
          "attention.factor", TensorData::of<float>({DType::f32, {}}, {static_cast<float>(term.factor)}));
      own = arranger.apply(OpKind::mul, {*own, factor});
    }
    if (bias && editor_.value(*bias).type.dtype != type) return false;
    bias = bias ? arranger.apply(OpKind::add, {*bias, *own}) : *own;
    return true;
  }

  bool add_mask(Arranger& arranger, const ScoreTerm& term, std::optional<ValueId>& mask) {
    auto own = arranger.arrange(term.value, dims_of(roles_, term.value));
    if (!own) return false;
    if (term.inverted) own = arranger.apply(OpKind::logical_not, {*own});
    mask = mask ? arranger.apply(OpKind::logical_and, {*mask, *own}) : *own;
    return true;
  }

  GraphEditor& editor_;
  Axes& axes_;
  AttentionForm form_;
  NodeId matmul_;
  std::vector<IndexedValue> results_;
  Roles roles_;
  std::size_t result_ = 0;
};

}  // namespace

bool place_attention(GraphEditor& editor, Axes& axes, const AttentionForm& form) {
  return Placement(editor, axes, form).run();
}

}  // namespace cermet
