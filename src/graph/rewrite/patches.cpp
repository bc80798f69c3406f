// A convolution whose windows lie side by side, with few channels: its windows are rows, and it is one product.
#include <algorithm>

#include "graph/rewrite/replace.hpp"

namespace cermet {
namespace {

/// Whether an attribute of two axes has these values; `absent`: what it is where the node does not say.
bool has_values(const Node& node, std::string_view name, const Ints& wanted, std::int64_t absent) {
  const AttributeValue* found = node.attributes.find(name);
  const Ints* values = found ? std::get_if<Ints>(found) : nullptr;
  if (values && !values->empty()) return *values == wanted;
  return std::ranges::all_of(wanted, [&](std::int64_t value) { return value == absent; });
}

bool has_text(const Node& node, std::string_view name, std::string_view wanted) {
  const AttributeValue* found = node.attributes.find(name);
  return !found || std::get<std::string>(*found) == wanted;
}

/// Channels, and windows and their sizes along both axes.
struct Patches {
  std::int64_t channels, rows, columns, height, width;
};

std::optional<Patches> patches_of(const GraphEditor& editor, const Node& conv) {
  constexpr std::int64_t
      most_channels = 4,
      least_window = 8;  // many channels are gathered well where they are last; short rows of windows are moved badly
  const Dims &x = editor.value(conv.inputs[0]).type.dims, &w = editor.value(conv.inputs[1]).type.dims;
  const auto is_known = [](const Dim& dim) { return dim.is_constant(); };
  if (x.size() != 4 || !std::all_of(x.begin() + 1, x.end(), is_known) ||
      editor.value(conv.inputs[1]).kind != ValueKind::constant)
    return {};
  const std::int64_t height = w[2].constant(), width = w[3].constant(), rows = x[2].constant() / height,
                     columns = x[3].constant() / width;
  const bool fits = x[1].constant() <= most_channels && x[1] == w[1] && std::min(height, width) >= least_window &&
                    rows > 0 && columns > 0 && x[2].constant() % height == 0 && x[3].constant() % width == 0;
  const bool side_by_side = has_values(conv, "strides", {height, width}, 1) &&
                            has_values(conv, "pads", {0, 0, 0, 0}, 0) && has_values(conv, "dilations", {1, 1}, 1) &&
                            has_text(conv, "layout", "nchw") && has_text(conv, "activation", "identity");
  if (!fits || !side_by_side || (conv.inputs.size() > 3 && conv.inputs[3])) return {};
  return Patches{x[1].constant(), rows, columns, height, width};
}

}  // namespace

bool multiply_patches(const Rule&, GraphEditor& editor, NodeId anchor) {
  const Node conv = editor.node(anchor);
  const auto p = patches_of(editor, conv);
  if (!p) return false;
  const auto before = [&](OpKind op, std::vector<ValueId> inputs, const Attributes& attributes) {
    return editor.insert_before(anchor, op, std::move(inputs), attributes, conv.scope)[0];
  };
  const std::int64_t length = p->channels * p->height * p->width,
                     results = editor.value(conv.inputs[1]).type.dims[0].constant();
  const ValueId apart = before(OpKind::reshape, {conv.inputs[0]},
                               {{"shape", Ints{0, p->channels, p->rows, p->height, p->columns, p->width}}});
  const ValueId windows = before(OpKind::transpose, {apart}, {{"permutation", Ints{0, 2, 4, 1, 3, 5}}});
  std::vector<ValueId> inputs{before(OpKind::reshape, {windows}, {{"shape", Ints{0, 0, 0, length}}})};
  const std::string weight = editor.value(conv.inputs[1]).name + ".rows";
  inputs.push_back(editor.add_constant(
      weight, ConstantExpression{OpKind::reshape, {conv.inputs[1]}, {{"shape", Ints{results, length}}}, 0}));
  if (conv.inputs.size() > 2 && conv.inputs[2]) inputs.push_back(conv.inputs[2]);
  const ValueId product = before(OpKind::linear, std::move(inputs), {});
  const ValueId made = before(OpKind::transpose, {product}, {{"permutation", Ints{0, 3, 1, 2}}});
  const std::string name = editor.value(conv.outputs[0]).name;
  const std::pair<ValueId, ValueId> replaced[] = {{conv.outputs[0], made}};
  editor.replace(std::span(&anchor, 1), replaced);
  editor.rename(made, name);
  return true;
}

}  // namespace cermet
