#include "op/conv.hpp"

#include "op/activation.hpp"
#include "op/operands.hpp"
#include "op/products.hpp"
#include "op/schema/operator.hpp"

namespace cermet::conv_op {

namespace in = op::conv;

std::vector<Case> conv_cases();  // op/conv_cases.cpp

namespace {

/// Places of a window of `extent` elements, `stride` apart, in `size` elements and their padding.
Dim places_of(const Problem& p, int axis, std::int64_t padding, std::int64_t extent, std::int64_t stride) {
  const Dim size = dim_of(p, in::x, axis);
  if (size.is_constant() && size.constant() + padding < extent)
    bad_operand(p, in::x, fmt::format("dimension {} of at least {}, so that a window fits", axis, extent - padding),
                p.input(in::x).to_string());
  const Dim places = floor_div(size + (padding - extent), stride) + 1;
  return padding - extent >= -stride ? places : dim_max(places, 0);
}

std::vector<TensorType> infer(const Problem& p) {
  const ConvGeometry g = check_convolution(p, 1);
  const std::int64_t channels = p.size(1, 0);
  std::array<Dim, 3> spatial;
  for (std::size_t axis = 3 - static_cast<std::size_t>(g.axes); axis < 3; ++axis)
    spatial[axis] = places_of(p, spatial_axis(g, axis), g.before[axis] + g.after[axis], g.extent(axis), g.stride[axis]);
  const TensorType y{p.input(in::x).dtype, conv_result(p, g, channels, spatial)};
  if (p.has(in::bias)) expect_dims(p, in::bias, {channels}, "dimension 0 of the weight");
  if (p.has(in::residual)) {
    expect_dims(p, in::residual, y.dims, "those of y");
    expect_dtype(p, in::residual, y.dtype, "that of y");
  }
  return {y};
}

/// What a window at one place multiplies with a row of the weight, in its order.
class Window {
 public:
  Window(const TensorView& x, const ConvGeometry& g, std::int64_t channels)
      : x_(x), g_(g), at_(conv_tensor(x, g.channels_last)), channels_(channels), bytes_(size_of(x.dtype)) {
    elements_.resize(static_cast<std::size_t>(length()) * bytes_);
  }

  std::int64_t length() const { return channels_ * g_.taps(); }

  /// Elements of `channels` channels from `first` on, zeros where the window leaves x.
  const void* gather(std::int64_t n, std::int64_t first, const ConvGeometry::Axes& place) {
    std::fill(elements_.begin(), elements_.end(), std::byte{0});
    std::byte* to = elements_.data();
    for (std::int64_t c = 0; c < channels_; ++c)
      for (std::int64_t t = 0; t < g_.taps(); ++t, to += bytes_) {
        const ConvGeometry::Axes tap{t / (g_.kernel[1] * g_.kernel[2]), t / g_.kernel[2] % g_.kernel[1],
                                     t % g_.kernel[2]};
        std::int64_t offset = n * at_.strides[0] + (first + c) * at_.strides[1];
        bool inside = true;
        for (std::size_t axis = 0; axis < 3; ++axis) {
          const std::int64_t i = place[axis] * g_.stride[axis] - g_.before[axis] + tap[axis] * g_.dilation[axis];
          inside = inside && i >= 0 && i < at_.dims[2 + axis];
          offset += i * at_.strides[2 + axis];
        }
        if (inside) std::memcpy(to, x_.as<std::byte>() + offset * static_cast<std::int64_t>(bytes_), bytes_);
      }
    return elements_.data();
  }

 private:
  const TensorView& x_;
  const ConvGeometry& g_;
  ConvTensor at_;
  std::int64_t channels_;
  std::size_t bytes_;
  std::vector<std::byte> elements_;
};

/// Weight as rows, one for each output channel.
std::vector<std::byte> dense_rows(const TensorView& weight) {
  const std::size_t bytes = size_of(weight.dtype);
  std::vector<std::byte> rows(static_cast<std::size_t>(weight.elements()) * bytes);
  const TensorView dense(rows.data(), weight.dtype, weight.shape);
  for (std::int64_t i = 0; i < weight.elements(); ++i) copy_element(weight, i, dense, i);
  return rows;
}

void reference(const ReferenceCall& call) {
  const TensorView &x = call.inputs[in::x], &weight = call.inputs[in::weight], &y = call.outputs[0];
  const ConvGeometry g = conv_geometry(call.attributes, weight.shape);
  const Activation activation = activation_from_name(call.attributes.text("activation"));
  const std::int64_t outputs = weight.shape[0], per_group = outputs / g.group;
  const std::vector<std::byte> rows = dense_rows(weight);
  const TensorView dense_y(nullptr, y.dtype, y.shape);  // its strides turn a place into an index
  const ConvTensor out = conv_tensor(dense_y, g.channels_last);
  Window window(x, g, weight.shape[1]);
  const std::int64_t row_bytes = window.length() * byte_size(weight.dtype);
  for (std::int64_t n = 0; n < out.batch(); ++n)
    for (std::int64_t position = 0; position < out.positions(); ++position) {
      const ConvGeometry::Axes place{position / (out.dims[3] * out.dims[4]), position / out.dims[4] % out.dims[3],
                                     position % out.dims[4]};
      const std::int64_t base =
          n * out.strides[0] + place[0] * out.strides[2] + place[1] * out.strides[3] + place[2] * out.strides[4];
      const void* taps = nullptr;
      for (std::int64_t m = 0; m < outputs; ++m) {
        if (m % per_group == 0) taps = window.gather(n, m / per_group * weight.shape[1], place);
        const std::int64_t i = base + m * out.strides[1];
        const DotProduct dot = dot_product(taps, x.dtype, rows.data() + m * row_bytes, weight.dtype, window.length());
        const double bias = call.has(in::bias) ? load(call.inputs[in::bias], m) : 0,
                     residual = call.has(in::residual) ? load(call.inputs[in::residual], i) : 0;
        store(y, i, activate(activation, dot.sum + bias + residual));
        // No activation's slope exceeds 1.2.
        note_magnitude(
            call, 0, i,
            (activation == Activation::identity ? 1 : 1.2) * (dot.magnitude + std::abs(bias) + std::abs(residual)));
      }
    }
}

double length_of(const Problem& p) {
  double length = 1;
  for (int axis = 1; axis < p.input(in::weight).rank(); ++axis) length *= static_cast<double>(p.size(1, axis));
  return length;
}

}  // namespace

OpSpec define() {
  return {
      .category = "Convolution and pooling",
      .summary = "Convolution over one to three spatial axes, with bias, residual and activation",
      .semantics =
          "y[n, m, o..] = activation(sum over c, k.. of weight[m, c, k..] * x[n, g * C / group + c, o.. * strides + "
          "k.. * dilations - pads] + bias[m] + "
          "residual[n, m, o..]), where g is the group of output channel m: M / group consecutive output channels read "
          "C / group consecutive channels of x. "
          "x is zero outside. An axis of length L has floor((L + padding - dilation * (k - 1) - 1) / stride) + 1 "
          "places. As ONNX's Conv (a "
          "cross-correlation: the kernel is not flipped). Sums, bias, residual and activation are in float32; one "
          "rounding to the type of x at the end. "
          "layout nhwc: x, residual and y have their channels last; the weight stays [M, C / group, k..].",
      .inputs = {{"x", dtypes::real, "[N, C, spatial..]", "samples", Mapping::many_to_many},
                 {"weight", dtypes::real, "[M, C / group, k..]", "a kernel per output channel", Mapping::many_to_many},
                 {"bias", dtypes::real, "[M]", "added per output channel", Mapping::one_to_one, true},
                 {"residual", dtypes::real, "[N, M, places..]", "added before the activation", Mapping::one_to_one,
                  true}},
      .outputs = {{"y", dtypes::real, "[N, M, places..]", "the convolution"}},
      .attributes = {{"strides", Ints{}, "steps of the window along each axis; 1 where empty"},
                     {"pads", Ints{}, "zeros before each axis, then after each axis; none where empty"},
                     {"dilations", Ints{}, "steps between the elements of the window; 1 where empty"},
                     {"group", std::int64_t{1}, "groups of channels; divides C and M"},
                     {"layout", std::string("nchw"), "where x, residual and y have their channels", {"nchw", "nhwc"}},
                     {"activation",
                      std::string("identity"),
                      "applied last",
                      {activation_names().begin(), activation_names().end()}}},
      .infer = infer,
      .reference = reference,
      .operations =
          [](const Problem& p) {
            return 2 * length_of(p) * static_cast<double>(p.outputs[0].elements().value(p.maximum));
          },
      .rounding_depth =
          [](const Problem& p) { return length_of(p) + (p.attributes.text("activation") == "identity" ? 4 : 16); },
      .cases = conv_cases,
  };
}

}  // namespace cermet::conv_op
