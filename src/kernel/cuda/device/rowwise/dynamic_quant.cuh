// dynamic_quant: codes and their scales from values, for each row, each group of a row, or everything in two passes. One work item is a block's rows.
#pragma once

#include "kernel/cuda/device/rowwise/dynamic_quant.hpp"
#include "kernel/cuda/device/rowwise/quantize_row.cuh"
#include "kernel/cuda/device/rowwise/sources.cuh"

namespace cermet::dynamic_quant {

/// Which row of smooth[E, K] a row takes.
enum class Index : uint8_t { none, ids, offsets };
/// Of a scale for everything: find the range, write the codes.
enum class Pass : uint8_t { only, range, codes };

struct Config {
  int columns = 0, lanes = 256, threads = 256, width = 1;
  DType x = DType::f32;
  Along smooths = Along::none;
  DType smooth = DType::f32;
  Index indexed = Index::none;
  DType index = DType::i32;
  Pass pass = Pass::only;
  Quantization out;
};

template <Config C>
struct Task {
  using Params = dynamic_quant::Params;
  using Map = RowMap<C.columns, C.lanes, C.width>;
  using Smooth = Element<C.smooth>;

  /// The row's factors; null where its index names no row of them.
  static __device__ __forceinline__ const Smooth* smooth_of(const Params& p, const RowIndex& row, uint32_t number) {
    const Smooth* smooth = static_cast<const Smooth*>(p.smooth);
    if constexpr (C.indexed == Index::none) return smooth;
    int64_t group = 0;
    if constexpr (C.indexed == Index::ids) {
      group = *row_of<const Element<C.index>>(p.index, row);
    } else {
      const Element<C.index>* offsets = static_cast<const Element<C.index>*>(p.offsets);
      while (group < p.experts && p.first_row + number >= offsets[group + 1]) ++group;
    }
    return group >= 0 && group < p.experts ? smooth + group * p.smooth_step : nullptr;
  }

  static __device__ void run(const Params& p, uint32_t item, char* smem) {
    constexpr uint32_t rows_per_block = C.threads / C.lanes;
    uint32_t* scratch = reinterpret_cast<uint32_t*>(smem);  // [64]
    const uint32_t number = item * rows_per_block + threadIdx.x / C.lanes;
    const bool active = rows_per_block == 1 || number < p.rows;
    const RowIndex index = row_index(p.dims, active ? number : p.rows - 1);  // surplus lanes take part in the reductions of their warp
    const Map map(p.length);
    const Smooth* smooth = smooth_of(p, index, number);
    const bool legal = C.indexed == Index::none || smooth != nullptr;
    auto row = make_row(map, SmoothedSource<Element<C.x>, C.smooths, Smooth, C.width>{row_of<const Element<C.x>>(p.x, index),
                                                                                      legal ? smooth : static_cast<const Smooth*>(p.smooth)});
    auto* const plain = &row;
    auto&& checked = [&]() -> decltype(auto) {
      if constexpr (C.indexed == Index::none) return *plain;
      else
        return row.then([legal](int, int, float(&v)[C.width]) {
#pragma unroll
          for (int k = 0; k < C.width; ++k) v[k] = legal ? v[k] : quiet_nan();
        });
    }();
    if constexpr (C.pass == Pass::only) {
      quantize_row<C.out, C.lanes>(checked, map, p.out, index, active, scratch);
    } else if constexpr (C.pass == Pass::range) {
      ValueRange range;
      checked.each([&](int, int, const float(&v)[C.width]) {
#pragma unroll
        for (int k = 0; k < C.width; ++k) widen<C.out.format>(range, v[k]);
      });
      range = row_range<C.out.format, C.lanes>(range, scratch);
      if (map.lane == 0 && active) {
        atomicMax(p.range, __float_as_uint(range.high));
        if constexpr (C.out.format.asymmetric) atomicMax(p.range + 1, __float_as_uint(range.low));
      }
    } else {
      const CodeScale scale = code_scale<C.out.format>({__uint_as_float(p.range[0]), __uint_as_float(p.range[1])});
      const Quantizer<C.out.format, C.out.exact> quantizer(scale);
      const QuantizedRow<C.out> out(p.out, index);
      if (active) checked.each([&](int, int column, const float(&v)[C.width]) { store_vector(out.codes + column, quantizer.codes(v)); });
      if (number == 0 && map.lane == 0) out.store_scale(0, scale);
    }
    end_of_row<C.lanes>();
  }
};

}  // namespace cermet::dynamic_quant
