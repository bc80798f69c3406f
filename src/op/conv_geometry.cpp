#include "op/conv.hpp"

namespace cermet {
namespace {

constexpr std::size_t all_axes = 3;

bool is_nhwc(const Attributes& attributes) {
  const AttributeValue* const layout = attributes.find("layout");
  return layout && std::get<std::string>(*layout) == "nhwc";
}

/// Entries `first`.. of a list, for the last of three axes; `fallback` where the list is empty.
ConvGeometry::Axes spread(const Ints& list, std::size_t first, std::size_t axes, std::int64_t missing,
                          std::int64_t fallback) {
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
  g.channels_last = is_nhwc(attributes);
  return g;
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

ConvGeometry conv_geometry(const Problem& problem) {
  return conv_geometry(problem.attributes, bind(problem.input(1).dims, {}));
}

ConvTensor conv_tensor(const TensorView& view, bool channels_last) {
  return {as_five(view.shape, channels_last, 1), as_five(view.strides, channels_last, 0)};
}

int spatial_axis(const ConvGeometry& g, std::size_t axis) {
  return (g.channels_last ? 1 : 2) + static_cast<int>(axis) - (static_cast<int>(all_axes) - g.axes);
}

Dims conv_result(const Problem& p, const ConvGeometry& g, const Dim& channels, const std::array<Dim, 3>& spatial) {
  Dims dims = p.input(0).dims;
  dims[g.channels_last ? dims.size() - 1 : 1] = channels;
  for (std::size_t axis = all_axes - static_cast<std::size_t>(g.axes); axis < all_axes; ++axis)
    dims[static_cast<std::size_t>(spatial_axis(g, axis))] = spatial[axis];
  return dims;
}

}  // namespace cermet
