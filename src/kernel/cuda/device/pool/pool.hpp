// Configuration and parameters of the pooling tasks.
#pragma once

#include "kernel/cuda/device/dtype.hpp"
#include "kernel/cuda/device/image/positions.hpp"

namespace cermet::pool {

inline constexpr int threads = 256;

enum class Kind : int32_t { max, average, norm };
constexpr const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::max: return "cermet::pool::Kind::max";
    case Kind::average: return "cermet::pool::Kind::average";
    case Kind::norm: return "cermet::pool::Kind::norm";
  }
  return "";
}

struct Config {
  DType type = {};
  Kind kind = Kind::max;
  int run = 1;  ///< channels of a thread

  template <class Visit>
  constexpr void fields(Visit&& visit) const {
    visit("type", type), visit("kind", kind), visit("run", run);
  }
};

struct Params {
  const void* x;
  void* y;
  int64_t* indices;  ///< null: not asked for
  SpatialTensor from, to, places;
  PositionOrder order;  ///< of y
  int64_t channels;
  int32_t kernel[3], stride[3], dilation[3], before[3], after[3];
  int32_t count_padding, columns, power;
};

}  // namespace cermet::pool
