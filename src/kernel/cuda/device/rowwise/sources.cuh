// Where the values of a row come from.
#pragma once

#include "kernel/cuda/device/ptx/cache_policy.cuh"
#include "kernel/cuda/device/rowwise/row.cuh"

namespace cermet {

/// The elements of a row as they are.
template <class T, int Width>
struct PlainSource {
  using Raw = Vector<T, Width>;
  using Plain = T;  ///< type of the elements, which are the values
  const T* x;       // [length]

  __device__ __forceinline__ Raw fetch(int64_t column) const { return load_vector<Width>(x + column); }
  __device__ __forceinline__ void values(const Raw& raw, int, float (&v)[Width]) const { to_floats(raw, v); }
};

/// x + residual; Rounded: as it reads back from the type of the residual. Overwritten: the sum goes where the residual was, which the L2 should keep until
/// then (after that it is like any other line).
template <class X, class Residual, int Width, bool Rounded, bool Overwritten = false>
struct SumSource {
  struct Raw {
    Vector<X, Width> x;
    Vector<Residual, Width> residual;
  };
  const X* x;                // [length]
  const Residual* residual;  // [length]

  __device__ __forceinline__ Raw fetch(int64_t column) const {
    if constexpr (Overwritten && sizeof(Vector<Residual, Width>) == 16) {
      Words<4> words;
      ptx::load_16(residual + column, ptx::evict_last_policy(), words.at);
      return {load_vector<Width>(x + column), __builtin_bit_cast(decltype(Raw::residual), words)};
    } else {
      return {load_vector<Width>(x + column), load_vector<Width>(residual + column)};
    }
  }
  __device__ __forceinline__ void values(const Raw& raw, int, float (&v)[Width]) const {
#pragma unroll
    for (int k = 0; k < Width; ++k) {
      v[k] = to_float(raw.x[k]) + to_float(raw.residual[k]);
      if constexpr (Rounded) v[k] = to_float(from_float<Residual>(v[k]));
    }
  }
};

/// x * smooth.
template <class X, class Smooth, int Width>
struct SmoothedSource {
  struct Raw {
    Vector<X, Width> x;
    Vector<Smooth, Width> smooth;
  };
  const X* x;            // [length]
  const Smooth* smooth;  // [length]

  __device__ __forceinline__ Raw fetch(int64_t column) const { return {load_vector<Width>(x + column), load_vector<Width>(smooth + column)}; }
  __device__ __forceinline__ void values(const Raw& raw, int, float (&v)[Width]) const {
    to_floats(raw.x, v);
#pragma unroll
    for (int k = 0; k < Width; ++k) v[k] = __fmul_rn(v[k], to_float(raw.smooth[k]));
  }
};

}  // namespace cermet
