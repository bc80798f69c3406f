#include "kernel/cuda/conv/weights.hpp"

#include <cstring>

#include "base/checked.hpp"

namespace cermet::cuda {
namespace {

constexpr std::int64_t unit = 8;  // elements: 16 bytes of the smallest type

std::int64_t taps_of(const Shape& weight) {
  std::int64_t taps = 1;
  for (int axis = 2; axis < weight.rank(); ++axis) taps *= weight[axis];
  return taps;
}

/// Steps of taps that are `tap` elements apart.
conv::WeightSteps steps_of(const Shape& weight, std::int64_t output, std::int64_t input, std::int64_t tap) {
  conv::WeightSteps steps{output, input, {}};
  for (int axis = weight.rank() - 1, at = 2; axis >= 2; --axis, --at) {
    steps.tap[at] = tap;
    tap *= weight[axis];
  }
  return steps;
}

/// Copies every element of a weight to where steps say.
void place_elements(const TensorView& weight, const conv::WeightSteps& steps, std::byte* destination,
                    ThreadPool& pool) {
  const ConvTensor at = conv_tensor(weight, false);
  const std::size_t bytes = size_of(weight.dtype);
  pool.parallel_for(at.dims[0], 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t m = begin; m < end; ++m)
      for (std::int64_t c = 0; c < at.dims[1]; ++c)
        for (std::int64_t t = 0; t < at.positions(); ++t) {
          const std::int64_t d = t / (at.dims[3] * at.dims[4]), h = t / at.dims[4] % at.dims[3], w = t % at.dims[4];
          const std::int64_t from =
              m * at.strides[0] + c * at.strides[1] + d * at.strides[2] + h * at.strides[3] + w * at.strides[4];
          const std::int64_t to =
              m * steps.output + c * steps.input + d * steps.tap[0] + h * steps.tap[1] + w * steps.tap[2];
          std::memcpy(destination + to * static_cast<std::int64_t>(bytes),
                      weight.as<const std::byte>() + from * static_cast<std::int64_t>(bytes), bytes);
        }
  });
}

std::int64_t row_bytes(const TensorType& weight) {
  const Shape shape = bind(weight.dims, {});
  return shape[0] * conv_row_elements(shape) * byte_size(weight.dtype);
}
std::int64_t tap_bytes(const TensorType& weight) {
  const Shape shape = bind(weight.dims, {});
  return taps_of(shape) * conv_tap_elements(shape) * byte_size(weight.dtype);
}

void pack_rows(const TensorView& weight, std::byte* destination, ThreadPool& pool) {
  std::memset(destination, 0, static_cast<std::size_t>(row_bytes(weight.type())));
  place_elements(weight, conv_row_steps(weight.shape), destination, pool);
}
void pack_taps(const TensorView& weight, std::byte* destination, ThreadPool& pool) {
  std::memset(destination, 0, static_cast<std::size_t>(tap_bytes(weight.type())));
  place_elements(weight, conv_tap_steps(weight.shape), destination, pool);
}

}  // namespace

constexpr WeightLayout conv_rows{"conv.rows", row_bytes, pack_rows};
constexpr WeightLayout conv_taps{"conv.taps", tap_bytes, pack_taps};

std::int64_t conv_row_elements(const Shape& weight) { return round_up(weight[1] * taps_of(weight), unit); }
std::int64_t conv_tap_elements(const Shape& weight) { return round_up(weight[0], unit); }
conv::WeightSteps conv_row_steps(const Shape& weight) {
  return steps_of(weight, conv_row_elements(weight), 1, weight[1]);
}
conv::WeightSteps conv_tap_steps(const Shape& weight) { return steps_of(weight, 1, 0, conv_tap_elements(weight)); }

}  // namespace cermet::cuda
