// Attention as frameworks write it: heads are transposed before and after it, and those that queries share are
// repeated. The operator reads and writes such orders of axes itself, and shares heads.
#include <algorithm>

#include "graph/rewrite/derive/batched_form.hpp"
#include "graph/rewrite/derive/scores.hpp"
#include "graph/rewrite/replace.hpp"
#include "op/operands.hpp"

namespace cermet {
namespace {

using Operand = op::flash_attention::Operand;

class AttentionViews {
 public:
  AttentionViews(GraphEditor& editor, NodeId attention) : editor_(editor), attention_(attention) {}

  bool run() {
    auto form = batched_form(editor_, axes_, attention_);
    if (!form) return false;
    form_ = std::move(*form);
    operands_ = attention_operands(editor_, attention_);
    attributes_ = editor_.node(attention_).attributes;
    k_ = axes_.source_of_moves(editor_, form_.k);
    v_ = axes_.source_of_moves(editor_, form_.v);
    share_heads();
    const bool narrowed = narrow(Operand::bias, form_.bias) | narrow(Operand::mask, form_.mask);
    const AxisList all_heads = joined_axes({&form_.heads, &form_.group});
    find(Operand::q, "q_layout", form_.q, axes_.source_of_moves(editor_, form_.q), all_heads, form_.queries,
         form_.elements);
    find(Operand::k, "k_layout", form_.k, k_, form_.heads, form_.keys, form_.elements);
    find(Operand::v, "v_layout", form_.v, v_, form_.heads, form_.keys, form_.value_elements);
    find_result(layouts(form_.sequences, all_heads, form_.queries, form_.value_elements));
    if (moves_.empty() && !result_ && !narrowed) return false;
    return apply();
  }

 private:
  struct Move {
    Operand operand;
    const char* attribute;
    IndexedValue from;
    Layout layout;
  };

  /// Keys and values that an expansion repeats for every query head of a group: heads before it, as long as the heads
  /// of a group stand side by side.
  void share_heads() {
    const IndexedValue k = axes_.source(editor_, form_.k), v = axes_.source(editor_, form_.v);
    const AxisList of_k = axes_.flat(k.dims), of_v = axes_.flat(v.dims), heads = axes_.resolve(form_.heads);
    const auto has = [](const AxisList& list, Axis a) { return std::ranges::find(list, a) != list.end(); };
    const auto kept = std::ranges::find_if(heads, [&](Axis a) { return !has(of_k, a) || !has(of_v, a); });
    if (kept == heads.end() || std::any_of(kept, heads.end(), [&](Axis a) { return has(of_k, a) || has(of_v, a); }))
      return;
    if (of_k.size() != axes_.flat(form_.k.dims).size() - static_cast<std::size_t>(heads.end() - kept) ||
        of_v.size() != axes_.flat(form_.v.dims).size() - static_cast<std::size_t>(heads.end() - kept))
      return;  // something else is repeated, too
    const AxisList repeated(kept, heads.end());
    form_.heads.assign(heads.begin(), kept);
    form_.group = joined_axes({&repeated, &form_.group});
    k_ = k, v_ = v;
    shares_ = true;
  }

  /// A bias or mask before it was expanded; none where it is zeros, or hides nothing.
  bool narrow(Operand operand, const std::optional<IndexedValue>& given) {
    if (!given) return false;
    const ValueId before = operands_[operand];
    for (NodeId n = editor_.producer(before); n != no_node && editor_.node(n).op == OpKind::expand;
         n = editor_.producer(operands_[operand]))
      operands_[operand] = editor_.node(n).inputs[0];
    const auto number = uniform_of(editor_, operands_[operand]);
    if (number && (operand == Operand::bias ? *number == 0 : *number != 0)) operands_[operand] = {};
    return operands_[operand] != before;
  }

  /// Takes the layout that needs no copy of the source, where the operand is one. Shared heads may be copied, which are
  /// fewer.
  void find(Operand operand, const char* attribute, const IndexedValue& given, const IndexedValue& source,
            const AxisList& heads, const AxisList& tokens, const AxisList& elements) {
    const auto all = layouts(form_.sequences, heads, tokens, elements);
    const bool is_shared = shares_ && operand != Operand::q;
    if (!is_shared && (source.value == given.value || axes_.flat(source.dims) == axes_.flat(given.dims))) return;
    auto layout = layout_without_copy(axes_, source, all, 2);  // elements that are apart are slow to read
    if (!layout && is_shared) layout = all[0];
    if (layout) moves_.push_back({operand, attribute, source, *layout});
  }

  /// The last of the views that follow whose order the operator can write.
  void find_result(const std::array<Layout, 3>& all) {
    IndexedValue value = form_.o;
    for (;;) {
      const ValueId id = value.value;
      if (editor_.is_output(id) || editor_.uses(id).size() != 1) return;
      const NodeId reader = editor_.uses(id)[0].node;
      auto next = axes_.after(editor_, reader, value);
      if (!next) return;
      value = std::move(*next);
      const bool is_moved = axes_.flat(value.dims) != axes_.flat(form_.o.dims);
      const auto layout = layout_without_copy(axes_, value, all, 2);
      if (layout && is_moved) result_ = value, o_layout_ = *layout;
    }
  }

  void set_layout(const char* attribute, const Layout& layout) {
    if (layout.name == "bshd") attributes_ = without(attributes_, attribute);  // the default
    else attributes_.set(attribute, std::string(layout.name));
  }

  bool apply() {
    Arranger arranger(editor_, axes_, attention_);
    for (const Move& move : moves_) {
      const auto value = arranger.arrange(move.from, move.layout.dims);
      if (!value) {
        arranger.undo();
        return false;
      }
      operands_[move.operand] = *value;
      set_layout(move.attribute, move.layout);
    }
    if (!result_) {
      replace_attention(editor_, attention_, operands_, attributes_);
      return true;
    }
    set_layout("o_layout", o_layout_);
    const Node node = editor_.node(attention_);
    const NodeId made_node = editor_.next_id();
    const std::vector<ValueId> made =
        editor_.insert_before(attention_, OpKind::flash_attention, operands_, attributes_, node.scope);
    const auto result = arranger.arrange({made[0], o_layout_.dims}, result_->dims);
    if (!result) {
      editor_.erase(made_node);
      arranger.undo();
      return false;
    }
    const std::string name = editor_.value(result_->value).name;
    const NodeId last = editor_.producer(result_->value);
    editor_.replace_uses(result_->value, *result);
    std::string name_of_lse;
    if (made.size() > 1) {
      name_of_lse = editor_.value(node.outputs[1]).name;
      editor_.replace_uses(node.outputs[1], made[1]);
    }
    erase_unread(editor_, last);
    editor_.rename(*result, name);
    if (made.size() > 1) editor_.rename(made[1], name_of_lse);
    return true;
  }

  GraphEditor& editor_;
  NodeId attention_;
  Axes axes_;
  BatchedForm form_;
  IndexedValue k_, v_;
  bool shares_ = false;
  std::vector<ValueId> operands_;
  Attributes attributes_;
  std::vector<Move> moves_;
  std::optional<IndexedValue> result_;
  Layout o_layout_;
};

}  // namespace

bool read_attention_in_place(const Rule&, GraphEditor& editor, NodeId anchor) {
  return AttentionViews(editor, anchor).run();
}

}  // namespace cermet
