// Configuration and parameters of the reductions along axes.
#pragma once

#include "kernel/cuda/device/dtype.hpp"
#include "kernel/cuda/device/movement/axes.hpp"

namespace cermet::reduce {

inline constexpr int threads = 256;
inline constexpr int column_lanes = 32, column_groups = threads / column_lanes;

enum class Kind : uint8_t { sum, mean, prod, max, min };
constexpr const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::sum: return "cermet::reduce::Kind::sum";
    case Kind::mean: return "cermet::reduce::Kind::mean";
    case Kind::prod: return "cermet::reduce::Kind::prod";
    case Kind::max: return "cermet::reduce::Kind::max";
    case Kind::min: return "cermet::reduce::Kind::min";
  }
  return "";
}

struct Config {
  Kind kind = Kind::sum;
  DType x = {}, out = {};
  int group = 32;  ///< threads of a result: 32 or all, where rows are reduced

  template <class Visit>
  constexpr void fields(Visit&& visit) const {
    visit("kind", kind), visit("x", x), visit("out", out), visit("group", group);
  }
};

/// The terms of a result are split into `splits` ranges of positions; range s writes y at s * split_stride more.
struct Params {
  const void* x;
  void* y;
  int64_t splits, split_terms, split_stride;  ///< positions of a range; the stride in elements of y
  float divisor;                              ///< of the result, where it is divided
  uint32_t divides;
  uint32_t vectors;  ///< the dense axis is walked in words of 16 bytes
  Axes<2> kept;      ///< strides of x and y in elements; along the last one x is dense where columns are reduced
  Axes<1> reduced;   ///< strides of x in elements, or in words
};

struct IntegerConfig {
  Kind kind = Kind::sum;
  DType type = {};
  bool wraps = false;  ///< sums

  template <class Visit>
  constexpr void fields(Visit&& visit) const {
    visit("kind", kind), visit("type", type), visit("wraps", wraps);
  }
};

/// Of integers, bool and f64.
struct PlainParams {
  const void* x;
  void* y;
  Axes<2> kept;
  Axes<1> reduced;  ///< in index order
};

}  // namespace cermet::reduce
