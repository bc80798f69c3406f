// The convolution that takes everything: any layout, strides, groups and types, and transposed ones. A thread has a few
// output channels of one place.
#pragma once

#include "kernel/cuda/device/conv/general.hpp"
#include "kernel/cuda/device/team.cuh"
#include "kernel/cuda/device/tile/epilogue.cuh"

namespace cermet::conv {

/// E: the epilogue, see tile/epilogue.cuh.
template <GeneralConfig C, class E>
struct General {
  using Params = GeneralParams;
  using T = Element<C.type>;
  static constexpr int outputs = general_outputs;

  /// Place of x that a tap reads for a place of y along an axis; negative where there is none.
  static CERMET_DEVICE int source_of(const Params& p, int axis, int place, int tap) {
    if constexpr (C.transposed) {
      const int steps = place + p.before[axis] - tap * p.dilation[axis];
      if (steps < 0 || steps % p.stride[axis] != 0) return -1;
      const int at = steps / p.stride[axis];
      return at < p.size[axis] ? at : -1;
    } else {
      const int at = place * p.stride[axis] - p.before[axis] + tap * p.dilation[axis];
      return at < p.size[axis] ? at : -1;
    }
  }
  static CERMET_DEVICE int64_t offset_of(const Steps& steps, int batch, int channel, const int (&place)[3]) {
    return batch * steps.batch + channel * steps.channel + place[0] * steps.place[0] + place[1] * steps.place[1] +
           place[2] * steps.place[2];
  }

  /// Adds one tap's products over the channels of the group.
  static CERMET_DEVICE void add_tap(const Params& p, const T* x, [[maybe_unused]] const T* gate, const T* weight,
                                    int count, float (&sums)[outputs]) {
    for (int c = 0; c < p.group_inputs; ++c) {
      float value = to_float(x[c * p.x_step.channel]);
      if constexpr (C.gated) value = to_float(from_float<T>(value * to_float(gate[c * p.gate_channel])));
      const T* const row = weight + c * p.weight_step.input;
#pragma unroll
      for (int r = 0; r < outputs; ++r)
        sums[r] = fmaf(value, to_float(row[r < count ? r * p.weight_step.output : 0]), sums[r]);
    }
  }

  static CERMET_DEVICE void store(const Params& p, int batch, int channel, int count, const int (&place)[3],
                                  const float (&sums)[outputs]) {
#pragma unroll
    for (int r = 0; r < outputs; ++r) {
      if (r >= count) break;
      epilogue::ValuesOf<E> x;
      for_constants<E::extras>([&]<int I>(Constant<I>) {
        const auto* const data = static_cast<const Element<E::extra[I].dtype>*>(p.extra[I]);
        x.bits[I] = epilogue::bits_of(data[offset_of(p.extra_step[I], batch, channel + r, place)]);
      });
      const auto put = [&]<class Result>(epilogue::Which<Result>, void* y, const Steps& step) {
        using Out = Element<Result::out>;
        static_cast<Out*>(y)[offset_of(step, batch, channel + r, place)] =
            epilogue::rounded<Out>(Result::value(sums[r], x));
      };
      put(epilogue::Which<E>{}, p.y, p.y_step);
      if constexpr (epilogue::gives_two<E>) put(epilogue::Which<typename E::Second>{}, p.second, p.second_step);
    }
  }

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team, char*) {
    const uint32_t positions = static_cast<uint32_t>(p.places[0] * p.places[1] * p.places[2]);
    const uint32_t group_blocks = static_cast<uint32_t>((p.group_outputs + outputs - 1) / outputs),
                   blocks = group_blocks * static_cast<uint32_t>(p.groups);
    const uint32_t at = item % p.sample_items * general_threads + Team::rank();
    const uint32_t position = C.channels_last ? at / blocks : at % positions,
                   block = C.channels_last ? at % blocks : at / positions;
    if (position >= positions || block >= blocks) return;
    const int batch = static_cast<int>(item / p.sample_items);
    const int group = static_cast<int>(block / group_blocks), first = static_cast<int>(block % group_blocks) * outputs;
    const int channel = group * p.group_outputs + first, count = min_of(outputs, p.group_outputs - first);
    const int row = static_cast<int>(position) / p.places[2];
    const int place[3] = {row / p.places[1], row % p.places[1], static_cast<int>(position) % p.places[2]};

    const T* const x = static_cast<const T*>(p.x) + batch * p.x_step.batch +
                       static_cast<int64_t>(group) * p.group_inputs * p.x_step.channel;
    // The weight of a transposed convolution has the channels of all groups along its first axis, which are inputs.
    const T* weight = static_cast<const T*>(p.weight) + (C.transposed ? first : channel) * p.weight_step.output;
    if constexpr (C.transposed) weight += static_cast<int64_t>(group) * p.group_inputs * p.weight_step.input;
    const T* const gate =
        C.gated ? static_cast<const T*>(p.gate) + batch * p.gate_batch + group * p.group_inputs * p.gate_channel
                : nullptr;
    float sums[outputs] = {};
    for (int kd = 0; kd < p.kernel[0]; ++kd) {
      const int d = source_of(p, 0, place[0], kd);
      for (int kh = 0; kh < p.kernel[1] && d >= 0; ++kh) {
        const int h = source_of(p, 1, place[1], kh);
        for (int kw = 0; kw < p.kernel[2] && h >= 0; ++kw) {
          const int w = source_of(p, 2, place[2], kw);
          if (w < 0) continue;
          add_tap(p, x + d * p.x_step.place[0] + h * p.x_step.place[1] + w * p.x_step.place[2], gate,
                  weight + kd * p.weight_step.tap[0] + kh * p.weight_step.tap[1] + kw * p.weight_step.tap[2], count,
                  sums);
        }
      }
    }
    store(p, batch, channel, count, place, sums);
  }
};

}  // namespace cermet::conv
