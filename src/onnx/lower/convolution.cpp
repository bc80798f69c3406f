// Convolutions, pooling and resampling.
#include <algorithm>
#include <cmath>

#include "onnx/lower/fused.hpp"
#include "onnx/lower/quantized_product.hpp"

namespace cermet::onnx {
namespace {

struct Window {
  Ints kernel, strides, dilations, pads;
};

/// Numbers of attributes, of a size with which no sum or product of a few of them overflows.
void check_sizes(Lowering& l, std::string_view what, const Ints& values, std::int64_t least) {
  constexpr std::int64_t most = std::int64_t{1} << 20;
  for (const std::int64_t v : values)
    l.expect(v >= least && v <= most, "attribute {}: expected {} to {}, found {}", what, least, most, v);
}

/// Strides, dilations and pads of windows over the spatial axes; auto_pad needs their sizes.
Window window_of(Lowering& l, Operand x, Ints kernel) {
  const std::size_t spatial = kernel.size();
  l.expect(l.rank(x) == static_cast<int>(spatial) + 2, "expected an operand of {} dimensions, found {}", spatial + 2,
           l.type(x).to_string());
  Window w{std::move(kernel), l.integers("strides", Ints(spatial, 1)), l.integers("dilations", Ints(spatial, 1)),
           l.integers("pads", Ints(2 * spatial, 0))};
  l.expect(w.strides.size() == spatial && w.dilations.size() == spatial && w.pads.size() == 2 * spatial,
           "expected {} strides, {} dilations and {} pads, found {}, {} and {}", spatial, spatial, 2 * spatial,
           w.strides.size(), w.dilations.size(), w.pads.size());
  check_sizes(l, "kernel_shape", w.kernel, 1);
  check_sizes(l, "strides", w.strides, 1);
  check_sizes(l, "dilations", w.dilations, 1);
  check_sizes(l, "pads", w.pads, 0);
  const std::string mode = l.text("auto_pad", "NOTSET");
  if (mode == "NOTSET") return w;
  std::ranges::fill(w.pads, 0);
  if (mode == "VALID") return w;
  l.expect(mode == "SAME_UPPER" || mode == "SAME_LOWER",
           "attribute auto_pad: expected NOTSET, VALID, SAME_UPPER or SAME_LOWER, found {}", mode);
  for (std::size_t a = 0; a < spatial; ++a) {
    const std::int64_t size = l.size(x, static_cast<int>(a) + 2), out = (size + w.strides[a] - 1) / w.strides[a];
    const std::int64_t total =
        std::max<std::int64_t>((out - 1) * w.strides[a] + (w.kernel[a] - 1) * w.dilations[a] + 1 - size, 0);
    w.pads[a] = mode == "SAME_UPPER" ? total / 2 : total - total / 2;
    w.pads[a + spatial] = total - w.pads[a];
  }
  return w;
}

Ints kernel_of(Lowering& l, Operand weight) {
  Ints kernel;
  for (int a = 2; a < l.rank(weight); ++a) kernel.push_back(l.size(weight, a));
  return kernel;
}

Attributes pool_attributes(const Window& w) {
  return {{"kernel", w.kernel}, {"strides", w.strides}, {"pads", w.pads}, {"dilations", w.dilations}};
}

Ints spatial_axes(Lowering& l, Operand x) {
  Ints axes;
  for (int a = 2; a < l.rank(x); ++a) axes.push_back(a);
  return axes;
}

}  // namespace

Operand convolution(Lowering& l, Operand x) {
  const Operand weight = l.in(1), bias = l.in_or_none(2);
  l.expect(l.rank(weight) >= 3, "operand 1: expected at least 3 dimensions, found {}", l.type(weight).to_string());
  const Window w = window_of(l, x, kernel_of(l, weight));
  if (const std::optional<Operand> y =
          quantized_conv(l, x, weight, bias, {w.strides, w.dilations, w.pads, l.integer("group", 1)}))
    return *y;
  const Attributes attributes{
      {"strides", w.strides}, {"pads", w.pads}, {"dilations", w.dilations}, {"group", l.integer("group", 1)}};
  return l.op(OpKind::conv, bias ? std::vector<Operand>{x, weight, bias} : std::vector<Operand>{x, weight}, attributes);
}

void lower_conv(Lowering& l) { l.set(0, convolution(l, l.in(0))); }

void lower_conv_transpose(Lowering& l) {
  const Operand x = l.in(0), weight = l.in(1), bias = l.in_or_none(2);
  const Ints kernel = kernel_of(l, weight);
  const std::size_t spatial = kernel.size();
  Ints strides = l.integers("strides", Ints(spatial, 1)), dilations = l.integers("dilations", Ints(spatial, 1)),
       pads = l.integers("pads", Ints(2 * spatial, 0)), output_padding = l.integers("output_padding", Ints(spatial, 0));
  l.expect(strides.size() == spatial && dilations.size() == spatial && pads.size() == 2 * spatial &&
               output_padding.size() == spatial,
           "expected strides, dilations, pads and output_padding for {} axes", spatial);
  l.expect(l.rank(x) == static_cast<int>(spatial) + 2, "expected an operand of {} dimensions, found {}", spatial + 2,
           l.type(x).to_string());
  check_sizes(l, "kernel_shape", kernel, 1);
  check_sizes(l, "strides", strides, 1);
  check_sizes(l, "dilations", dilations, 1);
  check_sizes(l, "output_padding", output_padding, 0);
  const std::string mode = l.text("auto_pad", "NOTSET");
  const Ints wanted = l.integers("output_shape");
  for (const std::int64_t out : wanted)
    l.expect(out >= 0 && out < (std::int64_t{1} << 40), "attribute output_shape: expected sizes, found {}", out);
  if (!wanted.empty() || mode != "NOTSET") {
    l.expect(wanted.empty() || wanted.size() >= spatial, "attribute output_shape: expected {} sizes, found {}", spatial,
             wanted.size());
    for (std::size_t a = 0; a < spatial; ++a) {
      const std::int64_t size = l.size(x, static_cast<int>(a) + 2),
                         whole = strides[a] * (size - 1) + output_padding[a] + (kernel[a] - 1) * dilations[a] + 1;
      if (mode == "VALID" && wanted.empty()) {
        pads[a] = pads[a + spatial] = 0;
        continue;
      }
      const std::int64_t out = wanted.empty() ? size * strides[a] : wanted[wanted.size() - spatial + a];
      const std::int64_t total = whole - out;
      if (total < 0) {
        output_padding[a] -= total;
        pads[a] = pads[a + spatial] = 0;
      } else {
        pads[a] = mode == "SAME_UPPER" ? total / 2 : total - total / 2;
        pads[a + spatial] = total - pads[a];
      }
    }
  }
  const Attributes attributes{{"strides", strides},
                              {"pads", pads},
                              {"dilations", dilations},
                              {"group", l.integer("group", 1)},
                              {"output_padding", output_padding}};
  l.set(0, l.op(OpKind::conv_transpose, bias ? std::vector<Operand>{x, weight, bias} : std::vector<Operand>{x, weight},
                attributes));
}

void lower_max_pool(Lowering& l) {
  const Operand x = l.in(0);
  Attributes attributes = pool_attributes(window_of(l, x, l.integers("kernel_shape")));
  attributes.set("ceil_mode", l.integer("ceil_mode", 0) != 0);
  if (l.wants(1)) {
    attributes.set("with_indices", true);
    attributes.set("storage_order", l.integer("storage_order", 0));
  }
  const std::vector<Operand> results = l.ops(OpKind::max_pool, {x}, attributes);
  l.set(0, results[0]);
  if (l.wants(1)) l.set(1, results[1]);
}

Operand average_pool(Lowering& l, Operand x) {
  Attributes attributes = pool_attributes(window_of(l, x, l.integers("kernel_shape")));
  attributes.set("ceil_mode", l.integer("ceil_mode", 0) != 0);
  attributes.set("count_include_pad", l.integer("count_include_pad", 0) != 0);
  return l.op(OpKind::average_pool, {x}, attributes);
}

void lower_average_pool(Lowering& l) { l.set(0, average_pool(l, l.in(0))); }

namespace {

/// The attribute p, which is a float in opset 1.
double exponent(Lowering& l) { return l.version() < 2 ? l.number("p", 2) : static_cast<double>(l.integer("p", 2)); }

}  // namespace

void lower_lp_pool(Lowering& l) {
  const Operand x = l.in(0);
  Attributes attributes = pool_attributes(window_of(l, x, l.integers("kernel_shape")));
  attributes.set("ceil_mode", l.integer("ceil_mode", 0) != 0);
  const double p = exponent(l);
  l.expect(p == std::floor(p) && p >= 1 && p < 0x1p31, "attribute p: expected a whole number from 1, found {}", p);
  attributes.set("p", static_cast<std::int64_t>(p));
  l.set(0, l.op(OpKind::lp_pool, {x}, attributes));
}

void lower_global_average_pool(Lowering& l) {
  l.set(0, l.reduce(OpKind::reduce_mean, l.in(0), spatial_axes(l, l.in(0)), true));
}
void lower_global_max_pool(Lowering& l) {
  l.set(0, l.reduce(OpKind::reduce_max, l.in(0), spatial_axes(l, l.in(0)), true));
}

void lower_global_lp_pool(Lowering& l) {
  const Operand x = l.in(0);
  const double p = exponent(l);
  const Operand sum =
      l.reduce(OpKind::reduce_sum, l.binary(OpKind::pow, l.unary(OpKind::abs, x), p), spatial_axes(l, x), true);
  l.set(0, l.binary(OpKind::pow, sum, 1 / p));
}

void lower_resize(Lowering& l) {
  const Operand x = l.in(0);
  const int rank = l.rank(x);
  Ints axes = l.integers("axes");
  if (axes.empty())
    for (int a = 0; a < rank; ++a) axes.push_back(a);
  for (std::int64_t& a : axes) a = l.axis(a, rank);
  const bool old = l.version() < 11;  // operands x, scales
  const Operand scales = l.in_or_none(old ? 1 : 2), sizes = l.in_or_none(3);
  Floats factor(static_cast<std::size_t>(rank), 1);
  Ints to;
  const auto at = [](std::int64_t a) { return static_cast<std::size_t>(a); };
  const bool has_scales = scales && l.elements(scales) > 0;
  l.expect(has_scales || (sizes && l.elements(sizes) > 0), "expected scales or sizes, found neither");
  if (has_scales) {
    const Floats given = l.numbers_in(scales);
    l.expect(given.size() == axes.size(), "scales: expected {}, found {}", axes.size(), given.size());
    for (std::size_t i = 0; i < axes.size(); ++i) factor[at(axes[i])] = given[i];
  } else {
    const Ints given = l.ints_in(sizes);
    l.expect(given.size() == axes.size(), "sizes: expected {}, found {}", axes.size(), given.size());
    for (int a = 0; a < rank; ++a) to.push_back(l.size(x, a));
    const std::string policy = l.text("keep_aspect_ratio_policy", "stretch");
    l.expect(policy == "stretch" || policy == "not_larger" || policy == "not_smaller",
             "attribute keep_aspect_ratio_policy: expected stretch, not_larger or not_smaller, found '{}'", policy);
    double same = 0;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const double f = static_cast<double>(given[i]) / static_cast<double>(to[at(axes[i])]);
      same = i == 0 ? f : policy == "not_larger" ? std::min(same, f) : std::max(same, f);
    }
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const auto size = static_cast<double>(to[at(axes[i])]);
      const double rounded = std::floor(size * same + 0.5);
      l.expect(policy == "stretch" || (rounded >= 0 && rounded < 0x1p40), "sizes: expected some with {}, found {}",
               policy, rounded);
      to[at(axes[i])] = policy == "stretch" ? given[i] : static_cast<std::int64_t>(rounded);
      if (policy != "stretch") factor[at(axes[i])] = same;  // where elements are, whatever the size was rounded to
    }
  }
  const std::string transformation = l.text("coordinate_transformation_mode", old ? "asymmetric" : "half_pixel");
  Attributes attributes{{"mode", l.text("mode", "nearest")},
                        {"coordinate_transformation_mode", transformation},
                        {"nearest_mode", l.text("nearest_mode", old ? "floor" : "round_prefer_floor")},
                        {"cubic_coeff_a", l.number("cubic_coeff_a", -0.75)},
                        {"exclude_outside", l.integer("exclude_outside", 0) != 0},
                        {"extrapolation_value", l.number("extrapolation_value", 0)},
                        {"antialias", l.integer("antialias", 0) != 0}};
  if (old && attributes.text("mode") == "nearest" && std::ranges::any_of(factor, [](double f) { return f < 1; })) {
    // What shrinks takes the next element, what grows the one before: ONNX's own values of opset 10, and ONNX
    // Runtime's.
    Floats less = factor;
    for (double& f : less) f = std::min(f, 1.0);
    for (double& f : factor) f = std::max(f, 1.0);
    Attributes shrinking = attributes;
    shrinking.set("nearest_mode", "ceil");
    shrinking.set("scales", less);
    const Operand smaller = l.op(OpKind::resize, {x}, shrinking);
    attributes.set("scales", factor);
    return l.set(0, std::ranges::all_of(factor, [](double f) { return f == 1; })
                        ? smaller
                        : l.op(OpKind::resize, {smaller}, attributes));
  }
  if (has_scales) attributes.set("scales", factor);
  else attributes.set("sizes", to);
  if (!has_scales && std::ranges::any_of(factor, [](double f) { return f != 1; })) attributes.set("scales", factor);
  if (transformation == "tf_crop_and_resize") {
    const Floats given = l.numbers_in(l.in(1));
    l.expect(given.size() == 2 * axes.size(), "roi: expected {} numbers, found {}", 2 * axes.size(), given.size());
    Floats roi(2 * static_cast<std::size_t>(rank), 0);
    std::fill(roi.begin() + rank, roi.end(), 1);
    for (std::size_t i = 0; i < axes.size(); ++i) {
      roi[at(axes[i])] = given[i];
      roi[at(axes[i] + rank)] = given[i + axes.size()];
    }
    attributes.set("roi", roi);
  }
  l.set(0, l.op(OpKind::resize, {x}, attributes));
}

}  // namespace cermet::onnx
