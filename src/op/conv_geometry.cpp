#include <algorithm>

#include "op/conv.hpp"

namespace cermet {
namespace {

constexpr std::size_t all_axes = 3;

bool is_channels_last(const Attributes& attributes) {
  const AttributeValue* const layout = attributes.find("layout");
  return layout && std::get<std::string>(*layout) == "nhwc";
}

/// Entries `first`.. of a list, for the last of three axes; `fallback` where the list is empty.
ConvGeometry::Axes spread(const Ints& list, std::size_t first, std::size_t axes, std::int64_t missing, std::int64_t fallback) {
  ConvGeometry::Axes result;
  result.fill(missing);
  for (std::size_t a = 0; a < axes; ++a) result[all_axes - axes + a] = list.empty() ? fallback : list[first + a];
  return result;
}

ConvGeometry geometry_of(const Attributes& attributes, const ConvGeometry::Axes& kernel, int axes) {
  const auto n = static_cast<std::size_t>(axes);
  ConvGeometry g;
  g.axes = axes;
  g.kernel = kernel;
  g.stride = spread(attributes.integers("strides"), 0, n, 1, 1);
  g.dilation = spread(attributes.integers("dilations"), 0, n, 1, 1);
  g.before = spread(attributes.integers("pads"), 0, n, 0, 0);
  g.after = spread(attributes.integers("pads"), n, n, 0, 0);
  if (attributes.find("output_padding")) g.output_padding = spread(attributes.integers("output_padding"), 0, n, 0, 0);
  g.group = attributes.integer("group");
  g.channels_last = is_channels_last(attributes);
  return g;
}

/// An attribute with a number for each entry: none at all, or `count`.
const Ints& check_count(const Problem& p, std::string_view name, std::size_t count) {
  const Ints& list = p.attributes.integers(name);
  if (!list.empty() && list.size() != count) bad_attribute(p, name, fmt::format("{} entries, or none", count));
  return list;
}

/// The same with entries of at least `least`, and small enough that offsets do not overflow.
void check_list(const Problem& p, std::string_view name, std::size_t count, std::int64_t least) {
  const Ints& list = check_count(p, name, count);
  constexpr std::int64_t most = std::int64_t{1} << 24;
  if (std::ranges::any_of(list, [&](std::int64_t entry) { return entry < least || entry > most; }))
    bad_attribute(p, name, fmt::format("entries from {} to {}", least, most));
}

std::array<std::int64_t, 5> as_five(const Shape& list, bool channels_last, std::int64_t missing) {
  const int rank = list.rank(), axes = rank - 2, first = channels_last ? 1 : 2;
  std::array<std::int64_t, 5> result{list[0], list[channels_last ? rank - 1 : 1], missing, missing, missing};
  for (int a = 0; a < axes; ++a) result[static_cast<std::size_t>(5 - axes + a)] = list[first + a];
  return result;
}

}  // namespace

ConvGeometry conv_geometry(const Attributes& attributes, const Shape& weight) {
  const int axes = weight.rank() - 2;
  ConvGeometry::Axes kernel{1, 1, 1};
  for (int a = 0; a < axes; ++a) kernel[all_axes - static_cast<std::size_t>(axes - a)] = weight[2 + a];
  return geometry_of(attributes, kernel, axes);
}

ConvGeometry conv_geometry(const Problem& problem) { return conv_geometry(problem.attributes, bind(problem.input(1).dims, {})); }

ConvTensor conv_tensor(const TensorView& view, bool channels_last) { return {as_five(view.shape, channels_last, 1), as_five(view.strides, channels_last, 0)}; }

ConvGeometry check_convolution(const Problem& p, int weight_inputs) {
  const int rank = p.input(0).rank();
  if (rank < 3 || rank > 5) bad_operand(p, 0, "3 to 5 dimensions: batch, channels and 1 to 3 spatial axes", p.input(0).to_string());
  expect_rank(p, 1, rank);
  expect_dtype(p, 1, p.input(0).dtype, "that of x");
  if (!p.input(1).is_constant()) bad_operand(p, 1, "constant dimensions", p.input(1).to_string());
  const Shape weight = bind(p.input(1).dims, {});
  for (int axis = 2; axis < rank; ++axis)
    if (weight[axis] < 1) bad_operand(p, 1, "at least one tap along each spatial axis", p.input(1).to_string());
  const auto axes = static_cast<std::size_t>(rank - 2);
  check_list(p, "strides", axes, 1);
  check_list(p, "dilations", axes, 1);
  check_list(p, "pads", 2 * axes, 0);
  if (p.attributes.find("output_padding")) check_count(p, "output_padding", axes);
  const ConvGeometry g = conv_geometry(p.attributes, weight);
  if (g.group < 1 || weight[0] % g.group != 0) bad_attribute(p, "group", fmt::format("a positive divisor of the weight's dimension 0, {}", weight[0]));
  expect_dim(p, 0, g.channels_last ? -1 : 1, weight[weight_inputs] * (weight_inputs == 1 ? g.group : 1),
             weight_inputs == 1 ? "group times dimension 1 of the weight" : "dimension 0 of the weight");
  return g;
}

int spatial_axis(const ConvGeometry& g, std::size_t axis) { return (g.channels_last ? 1 : 2) + static_cast<int>(axis) - (static_cast<int>(all_axes) - g.axes); }

Dims conv_result(const Problem& p, const ConvGeometry& g, const Dim& channels, const std::array<Dim, 3>& spatial) {
  Dims dims = p.input(0).dims;
  dims[g.channels_last ? dims.size() - 1 : 1] = channels;
  for (std::size_t axis = all_axes - static_cast<std::size_t>(g.axes); axis < all_axes; ++axis)
    dims[static_cast<std::size_t>(spatial_axis(g, axis))] = spatial[axis];
  return dims;
}

}  // namespace cermet
