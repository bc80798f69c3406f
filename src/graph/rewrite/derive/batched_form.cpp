#include "graph/rewrite/derive/batched_form.hpp"

#include "graph/rewrite/pattern.hpp"
#include "op/operands.hpp"

namespace cermet {
namespace {

using namespace op::flash_attention;  // NOLINT(google-build-using-namespace): indices of operands

std::vector<AxisList> laid_out(const AttentionAxes& layout, const AxisList& sequences, const AxisList& heads,
                               const AxisList& tokens, const AxisList& elements) {
  std::vector<AxisList> dims(4, sequences);
  dims[static_cast<std::size_t>(layout.heads)] = heads;
  dims[static_cast<std::size_t>(layout.tokens)] = tokens;
  dims[static_cast<std::size_t>(layout.size)] = elements;
  return dims;
}

}  // namespace

std::optional<BatchedForm> batched_form(const GraphEditor& editor, Axes& axes, NodeId attention) {
  const Node& node = editor.node(attention);
  if (node.op != OpKind::flash_attention || editor.value(node.inputs[q]).type.rank() != 4) return {};
  const BatchedAttention a(problem_of(editor, attention).attributes);
  const auto dim = [&](std::size_t operand, int axis) {
    return editor.value(node.inputs[operand]).type.dims[static_cast<std::size_t>(axis)];
  };
  BatchedForm form;
  const Dim heads = dim(q, a.q.heads), kv_heads = dim(k, a.k.heads);
  form.sequences = axes.fresh(dim(q, 0));
  form.heads = axes.fresh(kv_heads);
  form.group = axes.fresh(Dim(heads.constant() / kv_heads.constant()));
  form.queries = axes.fresh(dim(q, a.q.tokens));
  form.keys = axes.fresh(dim(k, a.k.tokens));
  form.elements = axes.fresh(dim(q, a.q.size));
  form.value_elements = axes.fresh(dim(v, a.v.size));
  const AxisList all_heads = joined_axes({&form.heads, &form.group});
  form.q = {node.inputs[q], laid_out(a.q, form.sequences, all_heads, form.queries, form.elements)};
  form.k = {node.inputs[k], laid_out(a.k, form.sequences, form.heads, form.keys, form.elements)};
  form.v = {node.inputs[v], laid_out(a.v, form.sequences, form.heads, form.keys, form.value_elements)};
  form.o = {node.outputs[0], laid_out(a.o, form.sequences, all_heads, form.queries, form.value_elements)};
  for (const auto& [operand, to] : {std::pair(std::size_t{bias}, &form.bias), {std::size_t{mask}, &form.mask}}) {
    if (node.inputs.size() <= operand || !node.inputs[operand]) continue;
    auto dims = axes.broadcast(form.scores(), editor.value(node.inputs[operand]).type.dims);
    if (!dims) return {};
    *to = {node.inputs[operand], std::move(*dims)};
  }
  return form;
}

Attributes without(const Attributes& attributes, std::string_view name) {
  Attributes others;
  for (const auto& [own, value] : attributes)
    if (own != name) others.set(own, value);
  return others;
}

std::vector<ValueId> attention_operands(const GraphEditor& editor, NodeId attention) {
  std::vector<ValueId> operands = editor.node(attention).inputs;
  operands.resize(lengths + 1);
  return operands;
}

void replace_attention(GraphEditor& editor, NodeId attention, const std::vector<ValueId>& operands,
                       const Attributes& attributes) {
  const Node node = editor.node(attention);
  const std::vector<ValueId> made =
      editor.insert_before(attention, OpKind::flash_attention, operands, attributes, node.scope);
  std::vector<std::string> names;
  for (std::size_t o = 0; o < made.size(); ++o) {
    names.push_back(editor.value(node.outputs[o]).name);
    editor.replace_uses(node.outputs[o], made[o]);
  }
  erase_unread(editor, attention);
  for (std::size_t o = 0; o < made.size(); ++o) editor.rename(made[o], names[o]);
}

}  // namespace cermet
