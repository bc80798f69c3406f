#include "op/pool_window.hpp"

#include "op/schema/infer.hpp"

namespace cermet {

PoolWindow PoolWindow::over(const Spatial& input) const {
  PoolWindow window = *this;
  if (whole) window.kernel = input;
  return window;
}

std::vector<AttributeSpec> pool_attributes() {
  return {{"kernel", Ints{}, "size of the window along each spatial axis; all of x where empty"},
          {"strides", Ints{}, "steps between windows; ones where empty"},
          {"pads", Ints{},
           "padding in front of each spatial axis, then behind each; less than the window; none where empty"},
          {"dilations", Ints{}, "steps between elements of a window; ones where empty"},
          {"ceil_mode", false, "a last window may reach beyond the padding behind, if it starts before it"},
          {"layout", std::string("nchw"), "nchw: x is [N, C, spatial..]; nhwc: [N, spatial.., C]", {"nchw", "nhwc"}}};
}

bool is_channels_last(const Attributes& attributes) { return attributes.text("layout") == "nhwc"; }

void set_spatial(Spatial& to, const Ints& list, std::size_t axes, std::size_t first) {
  for (std::size_t a = 0; a < axes && !list.empty(); ++a) to[3 - axes + a] = list[first + a];
}

PoolWindow pool_window(const Attributes& attributes, int rank) {
  const auto axes = static_cast<std::size_t>(rank - 2);
  const Ints &kernel = attributes.integers("kernel"), &pads = attributes.integers("pads");
  PoolWindow window;
  window.channels_last = is_channels_last(attributes);
  window.whole = kernel.empty();
  set_spatial(window.kernel, kernel, axes);
  set_spatial(window.stride, attributes.integers("strides"), axes);
  set_spatial(window.dilation, attributes.integers("dilations"), axes);
  set_spatial(window.before, pads, axes);
  set_spatial(window.after, pads, axes, axes);
  return window;
}

void expect_entries(const Problem& p, std::string_view name, std::size_t entries, std::int64_t least) {
  const Ints& list = p.attributes.integers(name);
  if (!list.empty() && list.size() != entries) bad_attribute(p, name, fmt::format("{} entries or none", entries));
  for (const std::int64_t entry : list)
    if (entry < least || entry >= std::int64_t{1} << 31)
      bad_attribute(p, name, fmt::format("entries in [{}, 2^31)", least));
}

Dims pooled_dims(const Problem& p) {
  const int rank = p.input(0).rank();
  if (rank < 3 || rank > 5) bad_operand(p, 0, "samples, channels and 1 to 3 spatial axes", p.input(0).to_string());
  const auto axes = static_cast<std::size_t>(rank - 2);
  for (const char* name : {"kernel", "strides", "dilations"}) expect_entries(p, name, axes, 1);
  expect_entries(p, "pads", 2 * axes, 0);
  const PoolWindow window = pool_window(p.attributes, rank);
  Dims dims = p.input(0).dims;
  for (std::size_t a = 3 - axes; a < 3; ++a) {
    const std::size_t axis = a - (3 - axes) + (window.channels_last ? 1 : 2);
    if (window.whole) {
      for (const char* name : {"strides", "pads", "dilations"})
        if (!p.attributes.integers(name).empty()) bad_attribute(p, name, "nothing where kernel is empty");
      dims[axis] = 1;
      continue;
    }
    const std::int64_t length = (window.kernel[a] - 1) * window.dilation[a] + 1, stride = window.stride[a];
    if (window.before[a] >= length || window.after[a] >= length)
      bad_attribute(p, "pads", fmt::format("less than the {} elements that the window spans", length));
    const Dim size = dims[axis], slack = size + window.before[a] + window.after[a] - length;
    if (slack.is_constant() && slack.constant() < 0)
      bad_operand(
          p, 0,
          fmt::format("dimension {} of at least {} for this window", axis, length - window.before[a] - window.after[a]),
          p.input(0).to_string());
    dims[axis] = p.attributes.flag("ceil_mode")
                     ? dim_min(ceil_div(slack, stride) + 1, ceil_div(size + window.before[a], stride))
                     : floor_div(slack, stride) + 1;
  }
  return dims;
}

double window_elements(const Problem& p) {
  const int rank = p.input(0).rank();
  const PoolWindow window = pool_window(p.attributes, rank);
  double elements = 1;
  for (std::size_t a = 0; a < 3; ++a) elements *= static_cast<double>(window.kernel[a]);
  for (int a = window.channels_last ? 1 : 2; window.whole && a < rank - (window.channels_last ? 1 : 0); ++a)
    elements *= static_cast<double>(p.size(0, a));
  return elements;
}

Dims pool_case_dims(std::string_view layout, Dims spatial, std::int64_t channels) {
  spatial.insert(layout == "nchw" ? spatial.begin() : spatial.end(), channels);
  spatial.insert(spatial.begin(), 2);
  return spatial;
}

}  // namespace cermet
