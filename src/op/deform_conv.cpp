#include "op/deform_conv.hpp"

#include "op/schema/infer.hpp"
#include "op/schema/reference.hpp"

namespace cermet::deform_conv_op {
namespace {

std::vector<TensorType> infer(const Problem& p) {
  for (const std::size_t operand : {deform::x, deform::weight, deform::offset}) expect_rank(p, operand, 4);
  for (std::size_t operand = deform::weight; operand <= deform::mask; ++operand)
    if (p.has(operand)) expect_dtype(p, operand, p.input(deform::x).dtype, "that of x");
  for (const char* name : {"strides", "dilations"}) expect_entries(p, name, 2, 1);
  expect_entries(p, "pads", 4, 0);
  const Dims &x = p.input(deform::x).dims, &weight = p.input(deform::weight).dims;
  for (std::size_t a = 1; a < 4; ++a)
    if (!weight[a].is_constant() || weight[a].constant() < 1)
      bad_operand(p, deform::weight, fmt::format("a constant dimension {} of at least 1", a),
                  p.input(deform::weight).to_string());
  const DeformConv conv = deform_conv_of(p.attributes, weight[2].constant(), weight[3].constant());
  if (!x[1].is_constant())
    bad_operand(p, deform::x, "a constant number of channels (dimension 1)", p.input(deform::x).to_string());
  const std::int64_t channels = x[1].constant();
  if (conv.groups < 1 || channels != conv.groups * weight[1].constant())
    bad_attribute(p, "groups",
                  fmt::format("the {} channels of x over the {} of the weight", channels, weight[1].constant()));
  if (!weight[0].is_constant() || weight[0].constant() % conv.groups != 0)
    bad_operand(p, deform::weight, fmt::format("a dimension 0 that {} groups divide", conv.groups),
                p.input(deform::weight).to_string());
  if (conv.offset_groups < 1 || channels % conv.offset_groups != 0)
    bad_attribute(p, "offset_groups", fmt::format("a divisor of {} channels", channels));
  Dims y{x[0], weight[0]};
  for (std::size_t a = 1; a < 3; ++a) {
    const PoolWindow& w = conv.window;
    const Dim slack = x[a + 1] + w.before[a] + w.after[a] - ((w.kernel[a] - 1) * w.dilation[a] + 1);
    if (slack.is_constant() && slack.constant() < 0)
      bad_operand(p, deform::x, fmt::format("dimension {} that the kernel fits", a + 1),
                  p.input(deform::x).to_string());
    y.push_back(floor_div(slack, w.stride[a]) + 1);
  }
  const std::int64_t taps = conv.window.kernel[1] * conv.window.kernel[2];
  expect_dims(p, deform::offset, {x[0], 2 * taps * conv.offset_groups, y[2], y[3]},
              "two offsets for each offset group, tap and result");
  if (p.has(deform::bias)) expect_dims(p, deform::bias, {weight[0]}, "one for each channel of y");
  if (p.has(deform::mask))
    expect_dims(p, deform::mask, {x[0], taps * conv.offset_groups, y[2], y[3]},
                "one for each offset group, tap and result");
  return {{p.input(deform::x).dtype, std::move(y)}};
}

/// x[n, c] between pixels; elements outside are zeros. Adds the absolute terms to `magnitude`.
double sample(const TensorView& x, std::int64_t n, std::int64_t c, double h, double w, double& magnitude) {
  const double top = std::floor(h), left = std::floor(w);
  double sum = 0;
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 2; ++j) {
      const double row = top + i, column = left + j;
      if (!(row >= 0 && row < static_cast<double>(x.shape[2]) && column >= 0 &&
            column < static_cast<double>(x.shape[3])))
        continue;
      const double weight = (i == 0 ? 1 - (h - top) : h - top) * (j == 0 ? 1 - (w - left) : w - left);
      const double value = load(x, ((n * x.shape[1] + c) * x.shape[2] + static_cast<std::int64_t>(row)) * x.shape[3] +
                                       static_cast<std::int64_t>(column));
      sum += weight * value;
      magnitude += std::abs(weight * value);
    }
  return sum;
}

void reference(const ReferenceCall& call) {
  const TensorView &x = call.inputs[deform::x], &weight = call.inputs[deform::weight],
                   &offset = call.inputs[deform::offset], &y = call.outputs[0];
  const DeformConv conv = deform_conv_of(call.attributes, weight.shape[2], weight.shape[3]);
  const PoolWindow& w = conv.window;
  const std::int64_t taps = w.kernel[1] * w.kernel[2], positions = y.shape[2] * y.shape[3], inner = weight.shape[1],
                     outer = y.shape[1];
  for (std::int64_t i = 0; i < y.elements(); ++i) {
    const std::int64_t n = i / positions / outer, o = i / positions % outer, at = i % positions, row = at / y.shape[3],
                       column = at % y.shape[3];
    double sum = call.has(deform::bias) ? load(call.inputs[deform::bias], o) : 0, magnitude = std::abs(sum);
    for (std::int64_t c = 0; c < inner; ++c)
      for (std::int64_t k = 0; k < taps; ++k) {
        const std::int64_t channel = o / (outer / conv.groups) * inner + c,
                           group = channel / (x.shape[1] / conv.offset_groups);
        const std::int64_t tap = (n * conv.offset_groups + group) * taps + k, tap_row = k / w.kernel[2],
                           tap_column = k % w.kernel[2];
        const double h = static_cast<double>(row * w.stride[1] - w.before[1] + tap_row * w.dilation[1]) +
                         load(offset, 2 * tap * positions + at);
        const double v = static_cast<double>(column * w.stride[2] - w.before[2] + tap_column * w.dilation[2]) +
                         load(offset, (2 * tap + 1) * positions + at);
        const double scale = load(weight, (o * inner + c) * taps + k) *
                             (call.has(deform::mask) ? load(call.inputs[deform::mask], tap * positions + at) : 1);
        double size = 0;
        sum += scale * sample(x, n, channel, h, v, size);
        magnitude += std::abs(scale) * size;
      }
    store(y, i, sum);
    note_magnitude(call, 0, i, magnitude);
  }
}

std::vector<Case> cases() {
  std::vector<Case> list;
  using enum DType;
  struct Sizes {
    std::int64_t groups = 1, offset_groups = 1, rows = 5, columns = 6;
    bool bias = true, mask = true;
  };
  const auto add = [&](std::string name, DType t, const Sizes& s, Attributes attributes, std::int64_t padding = 0,
                       double reach = 1.5) {
    const auto operand = [&](Dims dims, const Fill& fill) {
      return std::optional(CaseOperand{{t, std::move(dims)}, fill, padding});
    };
    const std::int64_t channels = 4;
    attributes.set("groups", s.groups);
    attributes.set("offset_groups", s.offset_groups);
    list.push_back({std::move(name),
                    {operand({2, channels, 6, 7}, normal()), operand({6, channels / s.groups, 2, 2}, normal()),
                     operand({2, 8 * s.offset_groups, s.rows, s.columns}, normal(reach)),
                     s.bias ? operand({6}, normal()) : std::nullopt,
                     s.mask ? operand({2, 4 * s.offset_groups, s.rows, s.columns}, uniform(0, 1)) : std::nullopt},
                    std::move(attributes)});
  };
  for (DType t : {f32, bf16, f16}) add(std::string(name_of(t)), t, {}, {});
  add("plain", f32, {.bias = false, .mask = false}, {});
  add("bias", f32, {.mask = false}, {});
  add("mask", f32, {.bias = false}, {});
  add("groups", f32, {.groups = 2}, {});
  add("offset_groups", f32, {.groups = 2, .offset_groups = 2}, {});
  add("strided", f32, {}, {}, 3);
  add("far_away", f32, {}, {}, 0, 30);
  add("geometry", f32, {.rows = 3, .columns = 7},
      {{"strides", Ints{2, 1}}, {"pads", Ints{0, 1, 1, 1}}, {"dilations", Ints{1, 2}}});
  return list;
}

}  // namespace

OpSpec define() {
  return {
      .category = "Convolution and pooling",
      .summary = "Convolution whose taps are moved by offsets",
      .semantics =
          "y[n, o, i, j] = bias[o] + sum over the channels c of o's group and the taps k = (u, v) of weight[o, c, u, "
          "v] * mask[n, g * K + k, i, j] * s, where "
          "g "
          "is the offset group of c, K the number of taps and s is x[n, c] at row i * stride - pad + u * dilation + "
          "offset[n, 2 * (g * K + k), i, j] and the "
          "column "
          "alike from the next offset: a bilinear combination of four elements, zeros outside of x. Coordinates are "
          "float64, sums float32.",
      .inputs = {{"x", dtypes::real, "[N, C, H, W]", "images", Mapping::many_to_many},
                 {"weight", dtypes::real, "[O, C / groups, kh, kw]", "filters", Mapping::many_to_many},
                 {"offset", dtypes::real, "[N, offset_groups * kh * kw * 2, Ho, Wo]", "moves of rows and columns",
                  Mapping::many_to_many},
                 {"bias", dtypes::real, "[O]", "added per channel", Mapping::one_to_many, true},
                 {"mask", dtypes::real, "[N, offset_groups * kh * kw, Ho, Wo]", "scales of taps", Mapping::many_to_many,
                  true}},
      .outputs = {{"y", dtypes::real, "[N, O, Ho, Wo]", "results"}},
      .attributes = {{"strides", Ints{}, "steps between results; ones where empty"},
                     {"pads", Ints{}, "padding in front of each spatial axis, then behind each; none where empty"},
                     {"dilations", Ints{}, "steps between taps; ones where empty"},
                     {"groups", 1, "groups of channels of x and y"},
                     {"offset_groups", 1, "groups of channels of x with offsets of their own"}},
      .infer = infer,
      .reference = reference,
      .operations =
          [](const Problem& p) {
            const double taps =
                static_cast<double>(p.size(deform::weight, 1) * p.size(deform::weight, 2) * p.size(deform::weight, 3));
            return 12 * taps * static_cast<double>(p.outputs[0].elements().value(p.maximum));
          },
      .rounding_depth =
          [](const Problem& p) {
            return static_cast<double>(p.size(deform::weight, 1) * p.size(deform::weight, 2) *
                                       p.size(deform::weight, 3)) +
                   12;
          },
      .cases = cases,
  };
}

}  // namespace cermet::deform_conv_op

namespace cermet {

DeformConv deform_conv_of(const Attributes& attributes, std::int64_t kernel_height, std::int64_t kernel_width) {
  DeformConv conv;
  conv.window.kernel = {1, kernel_height, kernel_width};
  const Ints& pads = attributes.integers("pads");
  set_spatial(conv.window.stride, attributes.integers("strides"), 2);
  set_spatial(conv.window.dilation, attributes.integers("dilations"), 2);
  set_spatial(conv.window.before, pads, 2);
  set_spatial(conv.window.after, pads, 2, 2);
  conv.groups = attributes.integer("groups");
  conv.offset_groups = attributes.integer("offset_groups");
  return conv;
}

}  // namespace cermet
