// Configuration and parameters of the general convolution: host and device.
#pragma once

#include "kernel/cuda/device/dtype.hpp"
#include "kernel/cuda/device/tile/epilogue.hpp"

namespace cermet::conv {

inline constexpr int general_threads = 256;
/// Neighbouring output channels of a thread.
inline constexpr int general_outputs = 4;

/// Elements from one batch, channel and place along depth, height and width to the next; 0 where an operand repeats.
struct Steps {
  int64_t batch, channel, place[3];
};
struct WeightSteps {
  int64_t output, input, tap[3];
};

struct GeneralConfig {
  DType type = {};             ///< of x and the weight
  bool channels_last = false;  ///< neighbouring threads have neighbouring channels, and not neighbouring places
  bool transposed = false;
  bool gated = false;  ///< x is multiplied by a gate, alike for all places of a sample, and rounded

  template <class Visit>
  constexpr void fields(Visit&& visit) const {
    visit("type", type), visit("channels_last", channels_last), visit("transposed", transposed);
    visit("gated", gated);
  }
};

struct GeneralParams {
  const void *x, *weight;
  void *y, *second;  ///< second: a second result, where the epilogue gives two
  Steps x_step, y_step, second_step;
  WeightSteps weight_step;
  const void* extra[epilogue::most_extras];
  Steps extra_step[epilogue::most_extras];
  int32_t groups, group_inputs, group_outputs;
  int32_t size[3], places[3];  ///< of x and y
  int32_t kernel[3], stride[3], dilation[3], before[3];
  uint32_t sample_items;  ///< of a sample
  const void* gate;       ///< of a channel of a sample, where x is gated
  int64_t gate_batch, gate_channel;
};

}  // namespace cermet::conv
