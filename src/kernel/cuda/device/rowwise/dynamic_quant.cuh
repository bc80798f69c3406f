// dynamic_quant: quantized values and their scales per row, per group of a row, or, in two passes, per tensor. One work
// item is a block's rows.
#pragma once

#include "kernel/cuda/device/rowwise/dynamic_quant.hpp"
#include "kernel/cuda/device/rowwise/region.cuh"

namespace cermet::dynamic_quant {

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

/// Q: to what.
template <Config C, Quantization Q>
struct Task {
  using Params = dynamic_quant::Params;
  using Smooth = Element<C.smooth>;
  using Values = float[C.layout.width];
  static constexpr Overlap overlap = Overlap::late;

  /// The row's factors; null where its index names no row of them.
  template <class Partition>
  static CERMET_DEVICE const Smooth* smooth_of(const Params& p, const RowCoord<Partition>& coord) {
    const Smooth* smooth = static_cast<const Smooth*>(p.smooth);
    if constexpr (C.indexed == Index::none) return smooth;
    int64_t group = 0;
    if constexpr (C.indexed == Index::ids) {
      group = *coord.template of<const Element<C.index>>(p.index);
    } else {
      const Element<C.index>* offsets = static_cast<const Element<C.index>*>(p.offsets);
      while (group < p.experts && p.first_row + coord.number >= offsets[group + 1]) ++group;
    }
    return group >= 0 && group < p.experts ? smooth + group * p.smooth_step : nullptr;
  }

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team, char* smem) {
    using Partition = RowPartition<C.layout, Team>;
    RowReducer<Partition> reduce(smem);
    const RowCoord<Partition> coord(item, p.dims, p.rows);
    const Partition partition(p.length);
    const Smooth* smooth = smooth_of(p, coord);
    const bool legal = C.indexed == Index::none || smooth != nullptr;
    const Element<C.x>* x = coord.template of<const Element<C.x>>(p.x);
    const auto source = [&] {
      if constexpr (!C.smooths) return PlainSource<Element<C.x>, C.layout.width>{x};
      else
        return SmoothedSource<Element<C.x>, Smooth, C.layout.width>{
            x, legal ? smooth : static_cast<const Smooth*>(p.smooth)};
    }();
    RawRow raw(partition, source, coord.active);
    auto row = make_row(partition, source, raw);
    if constexpr (C.indexed == Index::none) {
      quantize(p, row, coord, reduce);
    } else {
      auto&& checked = row.then([legal](int, int, Values& v) {
#pragma unroll
        for (int k = 0; k < C.layout.width; ++k) v[k] = legal ? v[k] : quiet_nan();
      });
      quantize(p, checked, coord, reduce);
    }
    reduce.finish();
  }

  template <class Row, class Partition>
  static CERMET_DEVICE void quantize(const Params& p, Row& row, const RowCoord<Partition>& coord,
                                     RowReducer<Partition>& reduce) {
    if constexpr (C.pass == Pass::only) {
      quantize_row<Q>(row, p.out, coord, reduce);
    } else if constexpr (C.pass == Pass::range) {
      const ValueRange range = row_range<Q.format>(thread_range<Q.format>(row), reduce);
      if (row.partition.lane == 0 && coord.active) {
        atomicMax(p.range, __float_as_uint(range.high));
        if constexpr (Q.format.asymmetric) atomicMax(p.range + 1, __float_as_uint(range.low));
      }
    } else {
      const QuantizedRow<Q> out(p.out, coord);
      const QuantizationParams scale = out.params_of({__uint_as_float(p.range[0]), __uint_as_float(p.range[1])});
      const Quantizer<Q.format, Q.exact> quantizer(scale);
      if (coord.active)
        row.each(
            [&](int, int64_t column, const Values& v) { store_vector(out.values + column, quantizer.quantize(v)); });
      if (p.first_row + coord.number == 0 && row.partition.lane == 0) out.store_scale(0, scale);
    }
  }
};

}  // namespace cermet::dynamic_quant
