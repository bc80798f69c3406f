// deform_conv: the moved taps of one result for all channels, then their products with each filter.
#include <cmath>

#include "base/checked.hpp"
#include "kernel/cpu/by_dtype.hpp"
#include "kernel/cpu/number.hpp"
#include "kernel/kernel.hpp"
#include "op/deform_conv.hpp"

namespace cermet::cpu {
namespace {

/// Element between pixels of a plane; those outside are zeros.
template <class T>
float between(const T* plane, const SpatialView& x, double h, double w) {
  const double top = std::floor(h), left = std::floor(w);
  if (!(top >= -1 && top < static_cast<double>(x.size[1]) && left >= -1 && left < static_cast<double>(x.size[2])))
    return 0;
  const auto row = static_cast<std::int64_t>(top), column = static_cast<std::int64_t>(left);
  const auto low = static_cast<float>(h - top), right = static_cast<float>(w - left);
  const auto at = [&](std::int64_t r, std::int64_t c) {
    const bool inside = r >= 0 && r < x.size[1] && c >= 0 && c < x.size[2];
    return inside ? to_number(plane[r * x.stride[1] + c * x.stride[2]]) : 0.0f;
  };
  return (1 - low) * ((1 - right) * at(row, column) + right * at(row, column + 1)) +
         low * ((1 - right) * at(row + 1, column) + right * at(row + 1, column + 1));
}

/// Results [begin, end) of one channel, every channel of each; `taps` has room for those of all channels of x.
template <class T>
void convolve(const LaunchArgs& args, const DeformConv& conv, std::int64_t begin, std::int64_t end, float* taps) {
  const PoolWindow& w = conv.window;
  const TensorView& weight = args.inputs[deform::weight];
  const SpatialView x = spatial_view(args.inputs[deform::x], false), y = spatial_view(args.outputs[0], false);
  const SpatialView offset = spatial_view(args.inputs[deform::offset], false);
  const bool masked = args.has(deform::mask), biased = args.has(deform::bias);
  const SpatialView mask = masked ? spatial_view(args.inputs[deform::mask], false) : SpatialView();
  const std::int64_t count = w.kernel[1] * w.kernel[2], each = x.channels / conv.offset_groups, inner = weight.shape[1],
                     outer = y.channels / conv.groups;
  for (std::int64_t i = begin; i < end; ++i) {
    const std::int64_t n = i / y.positions();
    const Spatial at = position_of(y.size, i % y.positions());
    for (std::int64_t g = 0; g < conv.offset_groups; ++g)
      for (std::int64_t k = 0; k < count; ++k) {
        const std::int64_t tap = g * count + k, tap_row = k / w.kernel[2], tap_column = k % w.kernel[2];
        const auto moved = [&](std::int64_t axis) {
          return static_cast<double>(
              to_number(args.inputs[deform::offset].as<const T>()[offset.offset(n, 2 * tap + axis, at)]));
        };
        const double row = static_cast<double>(at[1] * w.stride[1] - w.before[1] + tap_row * w.dilation[1]) + moved(0);
        const double column =
            static_cast<double>(at[2] * w.stride[2] - w.before[2] + tap_column * w.dilation[2]) + moved(1);
        const float scale = masked ? to_number(args.inputs[deform::mask].as<const T>()[mask.offset(n, tap, at)]) : 1.0f;
        for (std::int64_t c = g * each; c < (g + 1) * each; ++c)
          taps[c * count + k] =
              scale * between(args.inputs[deform::x].as<const T>() + x.offset(n, c, {0, 0, 0}), x, row, column);
      }
    for (std::int64_t o = 0; o < y.channels; ++o) {
      const float* from = taps + o / outer * inner * count;
      float sum = biased ? to_number(args.inputs[deform::bias].as<const T>()[o]) : 0.0f;
      for (std::int64_t c = 0; c < inner; ++c)
        for (std::int64_t u = 0; u < w.kernel[1]; ++u) {
          const T* row = weight.as<const T>() + o * weight.strides[0] + c * weight.strides[1] + u * weight.strides[2];
          for (std::int64_t v = 0; v < w.kernel[2]; ++v)
            sum += to_number(row[v]) * from[(c * w.kernel[1] + u) * w.kernel[2] + v];
        }
      args.outputs[0].as<T>()[y.offset(n, o, at)] = from_number<T>(sum);
    }
  }
}

/// Floats for the taps of one result.
std::int64_t room(std::int64_t channels, std::int64_t height, std::int64_t width) {
  return round_up(channels * height * width, std::int64_t{16});
}

}  // namespace

extern const Kernel conv_deform;
const Kernel conv_deform{
    .name = "conv.deform",
    .op = OpKind::deform_conv,
    .summary = "the moved taps of a result once for all filters; results spread over threads",
    .bind = [](const Problem& p) -> Launcher {
      return [conv = deform_conv_of(p.attributes, p.size(deform::weight, 2), p.size(deform::weight, 3))](
                 const LaunchArgs& args) {
        const TensorView &x = args.inputs[deform::x], &y = args.outputs[0];
        if (y.elements() == 0) return;
        const std::int64_t results = y.elements() / y.shape[1], threads = args.pool->size(),
                           size = room(x.shape[1], conv.window.kernel[1], conv.window.kernel[2]);
        by_real_dtype(x.dtype, [&](auto zero) {
          args.pool->run([&](int thread) {
            convolve<decltype(zero)>(args, conv, results * thread / threads, results * (thread + 1) / threads,
                                     reinterpret_cast<float*>(args.workspace) + thread * size);
          });
        });
      };
    },
    .workspace = [](const Problem& p, int threads) -> std::int64_t {
      return threads * room(p.size(deform::x, 1), p.size(deform::weight, 2), p.size(deform::weight, 3)) *
             static_cast<std::int64_t>(sizeof(float));
    }};

}  // namespace cermet::cpu
