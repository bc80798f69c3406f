// Where the values of a row come from.
#pragma once

#include "kernel/cuda/device/rowwise/row.cuh"

namespace cermet {

/// The elements of a row as they are.
template <class T, int Width>
struct PlainSource {
  using Raw = Vector<T, Width>;
  const T* x;  // [length]

  __device__ __forceinline__ Raw fetch(int column) const { return load_vector<Width>(x + column); }
  __device__ __forceinline__ void values(const Raw& raw, int, float (&v)[Width]) const { to_floats(raw, v); }
};

/// x + residual; Rounded: as it reads back from the type of the residual.
template <class X, class Residual, int Width, bool Rounded>
struct SumSource {
  struct Raw {
    Vector<X, Width> x;
    Vector<Residual, Width> residual;
  };
  const X* x;                // [length]
  const Residual* residual;  // [length]

  __device__ __forceinline__ Raw fetch(int column) const { return {load_vector<Width>(x + column), load_vector<Width>(residual + column)}; }
  __device__ __forceinline__ void values(const Raw& raw, int, float (&v)[Width]) const {
#pragma unroll
    for (int k = 0; k < Width; ++k) {
      v[k] = to_float(raw.x[k]) + to_float(raw.residual[k]);
      if constexpr (Rounded) v[k] = to_float(from_float<Residual>(v[k]));
    }
  }
};

/// x * smooth with float32 factors of any type; without them x.
template <class X, Along Kind, class Smooth, int Width>
struct SmoothedSource {
  struct Raw {
    Vector<X, Width> x;
    Vector<Smooth, Kind == Along::none ? 1 : Width> smooth;
  };
  const X* x;            // [length]
  const Smooth* smooth;  // [length]

  __device__ __forceinline__ Raw fetch(int column) const {
    Raw raw;
    raw.x = load_vector<Width>(x + column);
    if constexpr (Kind != Along::none) raw.smooth = load_vector<Width>(smooth + column);
    return raw;
  }
  __device__ __forceinline__ void values(const Raw& raw, int, float (&v)[Width]) const {
    to_floats(raw.x, v);
    if constexpr (Kind != Along::none) {
#pragma unroll
      for (int k = 0; k < Width; ++k) v[k] = __fmul_rn(v[k], to_float(raw.smooth[k]));
    }
  }
};

/// Brings the line that holds `address` into the L2.
__device__ __forceinline__ void prefetch_l2(const void* address) { asm volatile("prefetch.global.L2 [%0];" ::"l"(address)); }

}  // namespace cermet
