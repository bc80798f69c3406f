// Configuration, parameters and shared-memory plan of two convolutions of single pixels after the mean over an image:
// host and device. Steps count elements.
#pragma once

#include "kernel/cuda/device/dtype.hpp"
#include "kernel/cuda/device/tile/epilogue.hpp"

namespace cermet::conv {

/// Shared memory of a block, one of `cluster` that have a sample: its part of both weights, then float32 sums and
/// vectors.
struct SinglePixelsShape {
  static constexpr int threads = 1024;
  int channels, few, outputs;  ///< of x, after the first product, after the second
  int element_bytes;
  int cluster;

  static CERMET_HOST_DEVICE constexpr int share(int count, int of) { return (count + of - 1) / of; }
  /// Of a row of weights, which is padded (WeightLayout conv_rows).
  static CERMET_HOST_DEVICE constexpr int padded(int length) { return (length + 7) / 8 * 8; }
  CERMET_HOST_DEVICE constexpr int few_each() const { return share(few, cluster); }
  CERMET_HOST_DEVICE constexpr int outputs_each() const { return share(outputs, cluster); }
  CERMET_HOST_DEVICE constexpr int first_bytes() const { return few_each() * padded(channels) * element_bytes; }
  CERMET_HOST_DEVICE constexpr int second_bytes() const { return outputs_each() * padded(few) * element_bytes; }
  CERMET_HOST_DEVICE constexpr int width() const { return 16 / element_bytes; }
  CERMET_HOST_DEVICE constexpr int vectors() const { return channels / width(); }
  /// Groups of threads that have a pixel each, and those that add up a channel of them.
  CERMET_HOST_DEVICE constexpr int groups() const { return threads / vectors(); }
  CERMET_HOST_DEVICE constexpr int parts() const {
    return threads / channels > 1 ? (threads / channels < groups() ? threads / channels : groups()) : 1;
  }
  CERMET_HOST_DEVICE constexpr int floats() const { return (groups() + parts() + 2) * padded(channels) + padded(few); }
  CERMET_HOST_DEVICE constexpr int shared_bytes() const { return first_bytes() + second_bytes() + floats() * 4; }
};

struct SinglePixelsConfig {
  DType type = {};
  int channels = 0, few = 0, outputs = 0;
  int cluster = 1;
  bool rounds_mean = false, rounds_few = false;  ///< to the type, as if they were stored

  template <class Visit>
  constexpr void fields(Visit&& visit) const {
    visit("type", type), visit("channels", channels), visit("few", few), visit("outputs", outputs);
    visit("cluster", cluster), visit("rounds_mean", rounds_mean), visit("rounds_few", rounds_few);
  }
};

struct SinglePixelsParams {
  const void* x;
  int64_t x_sample, x_row, x_column, x_channel;
  int32_t pixels, columns;  ///< of a sample
  bool vectors;             ///< 16 bytes of channels move with one access
  bool one_line;            ///< rows follow one another as pixels do
  float divisor;            ///< of the sums
  const void *first, *second;
  void* y;
  int64_t y_sample, y_channel;
  epilogue::Operand first_extra[epilogue::most_extras], second_extra[epilogue::most_extras];  ///< alike for all samples
};

}  // namespace cermet::conv
