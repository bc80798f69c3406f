#include "op/conv.hpp"
#include "op/operands.hpp"
#include "op/schema/operator.hpp"
#include "op/schema/reference.hpp"

namespace cermet::conv_transpose_op {

namespace in = op::conv_transpose;
namespace {

std::vector<TensorType> infer(const Problem& p) {
  const ConvGeometry g = check_convolution(p, 0);
  const std::int64_t channels = p.size(1, 1) * g.group;
  std::array<Dim, 3> spatial;
  for (std::size_t axis = 3 - static_cast<std::size_t>(g.axes); axis < 3; ++axis) {
    if (g.output_padding[axis] < 0 || g.output_padding[axis] >= std::max(g.stride[axis], g.dilation[axis]))
      bad_attribute(p, "output_padding", "entries of at least 0, each less than its stride or its dilation");
    const int own = spatial_axis(g, axis);
    const Dim size = dim_of(p, in::x, own);
    const std::int64_t added =
        g.output_padding[axis] + g.extent(axis) - g.before[axis] - g.after[axis];  // to (size - 1) * stride
    if (size.is_constant() && (size.constant() - 1) * g.stride[axis] + added < 0)
      bad_operand(p, in::x, fmt::format("dimension {} large enough for the pads", own), p.input(in::x).to_string());
    const Dim places = (size - 1) * g.stride[axis] + added;
    spatial[axis] = added >= g.stride[axis] ? places : dim_max(places, 0);
  }
  if (p.has(in::bias)) expect_dims(p, in::bias, {channels}, "group times dimension 1 of the weight");
  return {{p.input(in::x).dtype, conv_result(p, g, channels, spatial)}};
}

/// Place of x whose tap `tap` reaches `place` of y along an axis; nothing where there is none.
std::optional<std::int64_t> source_of(const ConvGeometry& g, std::size_t axis, std::int64_t place, std::int64_t tap,
                                      std::int64_t size) {
  const std::int64_t steps = place + g.before[axis] - tap * g.dilation[axis];
  if (steps < 0 || steps % g.stride[axis] != 0 || steps / g.stride[axis] >= size) return std::nullopt;
  return steps / g.stride[axis];
}

void reference(const ReferenceCall& call) {
  const TensorView &x = call.inputs[in::x], &weight = call.inputs[in::weight], &y = call.outputs[0];
  const ConvGeometry g = conv_geometry(call.attributes, weight.shape);
  const TensorView dense_x(nullptr, x.dtype, x.shape);
  const ConvTensor in = conv_tensor(dense_x, false);
  const std::int64_t inputs = in.channels() / g.group, outputs = weight.shape[1], taps = g.taps(),
                     channels = outputs * g.group;
  const std::int64_t plane = y.elements() == 0 ? 0 : y.elements() / (y.shape[0] * channels);
  const ConvTensor out = conv_tensor(y, false);
  for (std::int64_t i = 0; i < y.elements(); ++i) {
    const std::int64_t n = i / (plane * channels), m = i / plane % channels, at = i % plane;
    const ConvGeometry::Axes place{at / (out.dims[3] * out.dims[4]), at / out.dims[4] % out.dims[3], at % out.dims[4]};
    const std::int64_t first = m / outputs * inputs;
    double sum = call.has(in::bias) ? load(call.inputs[in::bias], m) : 0, magnitude = std::abs(sum);
    for (std::int64_t t = 0; t < taps; ++t) {
      const auto d = source_of(g, 0, place[0], t / (g.kernel[1] * g.kernel[2]), in.dims[2]);
      const auto h = source_of(g, 1, place[1], t / g.kernel[2] % g.kernel[1], in.dims[3]);
      const auto w = source_of(g, 2, place[2], t % g.kernel[2], in.dims[4]);
      if (!d || !h || !w) continue;
      const std::int64_t position = *d * in.strides[2] + *h * in.strides[3] + *w * in.strides[4] + n * in.strides[0];
      for (std::int64_t c = first; c < first + inputs; ++c) {
        const double term =
            load(x, position + c * in.strides[1]) * load(weight, (c * outputs + m % outputs) * taps + t);
        sum += term;
        magnitude += std::abs(term);
      }
    }
    store(y, i, sum);
    note_magnitude(call, 0, i, magnitude);
  }
}

std::vector<Case> cases() {
  using enum DType;
  std::vector<Case> list;
  const auto add = [&](std::string name, DType t, Dims x, Dims weight, const Attributes& attributes = {},
                       bool bias = true, std::int64_t padding = 0, bool constant = true) {
    const std::int64_t channels = weight[1].constant() * (attributes.find("group") ? attributes.integer("group") : 1);
    Case c{std::move(name),
           {CaseOperand{{t, std::move(x)}, normal(), padding},
            CaseOperand{{t, std::move(weight)}, normal(0.4), padding, constant}},
           attributes};
    if (bias) c.inputs.push_back(CaseOperand{{t, {channels}}});
    list.push_back(std::move(c));
  };
  for (const DType t : {f32, f16, bf16}) {
    const std::string type(name_of(t));
    add(type, t, {2, 5, 4, 6}, {5, 7, 3, 3},
        {{"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}, {"output_padding", Ints{1, 0}}});
    add(type + "_upsampling", t, {1, 34, 3, 5}, {34, 33, 2, 2}, {{"strides", Ints{2, 2}}});
    add(type + "_groups", t, {1, 6, 5, 4}, {6, 2, 3, 2}, {{"group", 3}}, false);
  }
  add("plain", f32, {1, 3, 4, 5}, {3, 4, 3, 3});
  add("depthwise", f32, {1, 6, 5, 5}, {6, 1, 4, 4},
      {{"group", 6}, {"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}});
  add("dilated", f32, {1, 3, 5, 4}, {3, 4, 3, 2},
      {{"dilations", Ints{2, 3}}, {"strides", Ints{3, 2}}, {"pads", Ints{2, 1, 0, 3}}, {"output_padding", Ints{2, 1}}});
  add("stride_beyond_kernel", f32, {1, 3, 3, 4}, {3, 4, 2, 2}, {{"strides", Ints{3, 4}}});
  add("1x1", f32, {2, 9, 3, 4}, {9, 35, 1, 1});
  add("line", f32, {2, 6, 13}, {6, 5, 4}, {{"strides", Ints{2}}, {"pads", Ints{1, 1}}});
  add("volume", f32, {1, 4, 3, 4, 2}, {4, 3, 2, 3, 2},
      {{"strides", Ints{2, 1, 2}}, {"pads", Ints{0, 1, 0, 1, 1, 0}}, {"output_padding", Ints{1, 0, 1}}});
  add("long_reduction", f32, {1, 150, 3, 3}, {150, 5, 3, 3});
  add("strided_rows", f32, {2, 3, 4, 5}, {3, 4, 3, 3}, {}, true, 3);
  add("not_constant", f32, {1, 5, 4, 6}, {5, 7, 3, 3}, {{"strides", Ints{2, 2}}}, true, 0, false);
  add("cropped", f32, {1, 2, 2, 2}, {2, 3, 2, 2}, {{"pads", Ints{1, 2, 1, 1}}});
  add("one", f32, {1, 1, 1, 1}, {1, 1, 1, 1});
  add("empty_batch", f32, {0, 3, 5, 5}, {3, 4, 3, 3});
  add("no_inputs", f32, {2, 0, 3, 3}, {0, 3, 2, 2});
  return list;
}

double operations(const Problem& p) {
  double per_input = 2;
  for (int axis = 1; axis < p.input(in::weight).rank(); ++axis) per_input *= static_cast<double>(p.size(1, axis));
  return per_input * static_cast<double>(p.input(in::x).elements().value(p.maximum));
}

/// Terms of a result at most: windows that reach it, times the channels of a group.
double length_of(const Problem& p) {
  const ConvGeometry g = conv_geometry(p);
  const std::int64_t channels = p.size(1, 0) / g.group;
  auto length = static_cast<double>(channels);
  for (std::size_t axis = 0; axis < 3; ++axis) length *= static_cast<double>(g.kernel[axis]);
  return length;
}

}  // namespace

OpSpec define() {
  return {
      .category = "Convolution and pooling",
      .summary = "Transposed convolution over one to three spatial axes, with bias",
      .semantics =
          "What the gradient of conv with respect to its input computes: x[n, c, i..] * weight[c, m, k..] is added to "
          "y[n, g * M / group + m, i.. * strides + "
          "k.. * dilations - pads], where g is the group of channel c, and bias[g * M / group + m] to all of it. An "
          "axis of length L becomes (L - 1) * stride "
          "+ "
          "dilation * (k - 1) + 1 + output_padding - padding. As ONNX's ConvTranspose. Sums in float32; one rounding "
          "to the type of x at the end.",
      .inputs = {{"x", dtypes::real, "[N, C, spatial..]", "samples", Mapping::many_to_many},
                 {"weight", dtypes::real, "[C, M / group, k..]", "a kernel per pair of channels",
                  Mapping::many_to_many},
                 {"bias", dtypes::real, "[M]", "added per output channel", Mapping::one_to_one, true}},
      .outputs = {{"y", dtypes::real, "[N, M, places..]", "the transposed convolution"}},
      .attributes = {{"strides", Ints{}, "steps of the window along each axis of y; 1 where empty"},
                     {"pads", Ints{}, "removed from y before each axis, then after each axis; none where empty"},
                     {"dilations", Ints{}, "steps between the elements of the window; 1 where empty"},
                     {"output_padding", Ints{}, "added to the end of each axis of y; none where empty"},
                     {"group", std::int64_t{1}, "groups of channels; divides C"}},
      .infer = infer,
      .reference = reference,
      .operations = operations,
      .rounding_depth = [](const Problem& p) { return length_of(p) + 4; },
      .cases = cases,
  };
}

}  // namespace cermet::conv_transpose_op
