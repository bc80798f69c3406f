// The GEMM that takes everything: any element types, layouts, alignments, tails, scales and groups on the CUDA cores,
// and those of 16 bits and int8 whose rows are aligned on the tensor cores of any architecture. A block computes a tile
// of the result.
#pragma once

#include "kernel/cuda/device/gemm/groups.cuh"
#include "kernel/cuda/device/gemm/simt_core.cuh"
#include "kernel/cuda/device/gemm/tensor_core.cuh"

namespace cermet::gemm {

template <GeneralConfig C, bool Tensor>
struct CoreOf {
  using type = SimtCore<C>;
};
template <GeneralConfig C>
struct CoreOf<C, true> {
  using type = TensorCore<C>;
};

template <GeneralConfig C>
struct General {
  using Params = GeneralParams;
  using Core = typename CoreOf<C, C.tensor>::type;
  using Sum = typename Core::Sum;
  using A = Element<C.a>;
  using B = Element<C.b>;
  using Out = Element<C.out>;
  static constexpr bool integers = C.a == DType::i8;
  static constexpr int tile = C.block;
  static constexpr int own = Core::own, half = own / 2;  // a thread's rows, and its columns in each half of the tile
  static constexpr int columns = C.dual ? tile / 2 : tile;
  static constexpr int scale_block = 128;
  static_assert(C.block == 64 || C.block == 128);

  /// What a tile of the result works on.
  struct Place {
    const A* a;  // row `row`
    const B *b, *b_up;
    Out* y;  // row `row`, column 0
    const Element<C.residual>* residual;
    const float *row_scale, *column_scale;
    const int32_t* zero_point;
    const Element<C.bias>* bias;
    const Element<C.bias_up>* bias_up;
    int rows, column;  // rows of the tile, first column
  };

  static __device__ int64_t batch_offset(const Params& p, uint32_t batch, const int64_t (&steps_of)[max_batch_rank]) {
    int64_t offset = 0;
    for (int axis = p.batch_rank - 1; axis >= 0; --axis) {
      offset += batch % p.batch_dims[axis] * steps_of[axis];
      batch /= p.batch_dims[axis];
    }
    return offset;
  }
  template <class T>
  static __device__ T* rows_of(const Params& p, const RowOperand& operand, uint32_t batch, int row) {
    if (operand.data == nullptr) return nullptr;
    return const_cast<T*>(static_cast<const T*>(operand.data)) + batch_offset(p, batch, operand.batch) + row * operand.row;
  }

  /// False where a tile has no rows.
  static __device__ bool find(const Params& p, uint32_t item, Place& place) {
    const uint32_t tiles_m = static_cast<uint32_t>((p.m + tile - 1) / tile) + (C.grouped ? static_cast<uint32_t>(p.groups) : 0u);
    const uint32_t tiles_n = static_cast<uint32_t>((p.n + columns - 1) / columns);
    const uint32_t tile_m = item % tiles_m, batch = item / tiles_m / tiles_n;
    int row = static_cast<int>(tile_m) * tile, end = p.m, group = 0;
    if constexpr (C.grouped) {
      const GroupTile found = find_group(static_cast<const Element<C.offsets>*>(p.offsets), p.groups, p.m, tile, static_cast<int>(tile_m));
      if (found.group < 0) return false;
      row = found.row, end = found.rows_end, group = found.group;
    }
    place.rows = min_of(tile, end - row);
    place.column = static_cast<int>(item / tiles_m % tiles_n) * columns;
    place.a = rows_of<const A>(p, p.a, batch, row);
    const int64_t b_offset = batch_offset(p, batch, p.b_batch) + group * p.b_group;
    place.b = static_cast<const B*>(p.b) + b_offset;
    place.b_up = static_cast<const B*>(p.b_up) + b_offset;
    place.y = rows_of<Out>(p, p.y, batch, row);
    place.residual = rows_of<const Element<C.residual>>(p, p.residual, batch, row);
    place.row_scale = rows_of<const float>(p, p.row_scale, batch, row);
    place.zero_point = rows_of<const int32_t>(p, p.zero_point, batch, row);
    place.column_scale = p.column_scale == nullptr ? nullptr : p.column_scale + group * p.column_scale_group;
    place.bias = p.bias == nullptr ? nullptr : static_cast<const Element<C.bias>*>(p.bias) + group * p.bias_group;
    place.bias_up = static_cast<const Element<C.bias_up>*>(p.bias_up);
    return true;
  }

  static __device__ __forceinline__ void multiply(const Params& p, const Place& place, int first, int last, char* smem, Sum (&sums)[own][own],
                                                  Sum (&column_sums)[own]) {
    const auto a_row = [&](int outer) -> const A* { return outer < place.rows ? place.a + outer * p.a.row : nullptr; };
    const auto b_row = [&](int outer) -> const B* {
      const bool up = C.dual && outer >= columns;
      const int n = place.column + (up ? outer - columns : outer);
      if (n >= p.n) return nullptr;
      return up ? place.b_up + n * p.b_up_row : place.b + n * p.b_row;
    };
    Core::multiply(p, a_row, b_row, first, last, smem, sums, column_sums);
  }

  static __device__ __forceinline__ float column_scale(const Params& p, const Place& place, int n, int kb) {
    return place.column_scale == nullptr ? 1.0f : place.column_scale[n / p.column_scale_columns * p.column_scale_row + kb * p.column_scale_block];
  }

  static __device__ void run(const Params& p, uint32_t item, char* smem) {
    Place place;
    if (!find(p, item, place)) return;
    Sum sums[own][own] = {}, column_sums[own] = {};
    if constexpr (C.blocked) {
      float values[own][own] = {};
      for (int first = 0, kb = 0; first < p.k; first += scale_block, ++kb) {
        multiply(p, place, first, min_of(p.k, first + scale_block), smem, sums, column_sums);
#pragma unroll
        for (int i = 0; i < own; ++i) {
          const int row = Core::row_of(i);
          const float left = place.row_scale == nullptr || row >= place.rows ? 1.0f : place.row_scale[row * p.row_scale.row + kb * p.row_scale_block];
#pragma unroll
          for (int j = 0; j < own; ++j) {
            const int n = place.column + Core::column_of(j);
            const float term = __fmul_rn(left, __fmul_rn(n < p.n ? column_scale(p, place, n, kb) : 1.0f, static_cast<float>(sums[i][j])));
            values[i][j] = kb == 0 ? term : __fadd_rn(values[i][j], term);
            sums[i][j] = 0;
          }
        }
      }
      store(p, place, [&](int i, int j, int row, int n) { return finish(p, place, values[i][j], row, n); });
    } else if constexpr (C.dual) {
      multiply(p, place, 0, p.k, smem, sums, column_sums);
      store(p, place, [&](int i, int j, int, int n) {
        const float gate = place.bias == nullptr ? sums[i][j] : sums[i][j] + to_float(place.bias[n]);
        const float up = place.bias_up == nullptr ? sums[i][half + j] : sums[i][half + j] + to_float(place.bias_up[n]);
        return from_float<Out>(activate<C.activation>(gate) * up);
      });
    } else {
      multiply(p, place, 0, p.k, smem, sums, column_sums);
      store(p, place, [&](int i, int j, int row, int n) {
        Sum sum = sums[i][j];
        if constexpr (integers) {
          uint32_t exact = static_cast<uint32_t>(sum);
          if constexpr (C.zero_point)
            if (place.zero_point != nullptr) exact -= static_cast<uint32_t>(place.zero_point[row * p.zero_point.row]) * static_cast<uint32_t>(column_sums[j]);
          if constexpr (C.bias == DType::i32)
            if (place.bias != nullptr) exact += static_cast<uint32_t>(place.bias[n]);
          sum = static_cast<int32_t>(exact);
        }
        if constexpr (C.out == DType::i32) return sum;
        else {
          float v = static_cast<float>(sum);
          if (place.column_scale != nullptr) v = __fmul_rn(column_scale(p, place, n, 0), v);
          if (place.row_scale != nullptr) v = __fmul_rn(place.row_scale[row * p.row_scale.row], v);
          return finish(p, place, v, row, n);
        }
      });
    }
  }

  static __device__ __forceinline__ Out finish(const Params& p, const Place& place, float v, int row, int n) {
    if constexpr (C.bias != DType::i32)
      if (place.bias != nullptr) v = __fadd_rn(v, to_float(place.bias[n]));
    if (place.residual != nullptr) v = __fadd_rn(v, to_float(place.residual[row * p.residual.row + n]));
    if constexpr (C.out == DType::i8) v = v / *p.out_scale;
    return from_float<Out>(v);
  }

  /// value(i, j, row in the tile, column) for each element of the thread; a dual product has half as many.
  template <class Value>
  static __device__ __forceinline__ void store(const Params& p, const Place& place, Value&& value) {
#pragma unroll
    for (int i = 0; i < own; ++i) {
      const int row = Core::row_of(i);
      if (row >= place.rows) continue;
#pragma unroll
      for (int j = 0; j < (C.dual ? half : own); ++j) {
        const int n = place.column + Core::column_of(j);
        if (n < p.n) place.y[row * p.y.row + n] = value(i, j, row, n);
      }
    }
  }
};

}  // namespace cermet::gemm
