// Where the values of a row come from.
#pragma once

#include "kernel/cuda/device/rowwise/row.cuh"

namespace cermet {

/// The elements of a row as they are.
template <class T, int Width>
struct PlainSource {
  using Raw = Vector<T, Width>;
  using Plain = T;  ///< type of the elements, which are the values
  const T* x;       // [length]

  CERMET_DEVICE Raw fetch(int64_t column) const { return load_vector<Width>(x + column); }
  CERMET_DEVICE void values(const Raw& raw, int, float (&v)[Width]) const { to_floats(raw, v); }
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

  CERMET_DEVICE Raw fetch(int64_t column) const {
    return {load_vector<Width>(x + column), load_vector<Width>(smooth + column)};
  }
  CERMET_DEVICE void values(const Raw& raw, int, float (&v)[Width]) const {
    to_floats(raw.x, v);
#pragma unroll
    for (int k = 0; k < Width; ++k) v[k] = __fmul_rn(v[k], to_float(raw.smooth[k]));
  }
};

}  // namespace cermet
