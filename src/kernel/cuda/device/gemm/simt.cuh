// The product that takes everything: any element types, layouts, alignments, tails, scales and groups, with float32 multiply-adds on the CUDA cores (int8:
// byte dot products), summed in the order of k. A block makes a tile of the result; tiles of the operands pass through shared memory, transposed to
// [k][outer], while the next ones are on their way in registers.
#pragma once

#include "kernel/cuda/device/gemm/activation.cuh"
#include "kernel/cuda/device/gemm/groups.cuh"
#include "kernel/cuda/device/gemm/simt.hpp"

namespace cermet::gemm {

struct SimtConfig {
  DType a, b, out;
  DType bias = DType::f32, bias_up = DType::f32, residual = DType::f32, offsets = DType::i32;
  int block = 64;                         ///< rows and columns of a tile: 64 or 128
  bool a_outer = false, b_outer = false;  ///< neighbours in memory are neighbours along m (n), not along k
  bool dual = false, grouped = false;
  bool blocked = false;  ///< scales change every 128 reduction steps
  bool zero_point = false;
  Activation activation = Activation::identity;
};

/// A unit of the reduction as it lies in shared memory: a float32, or four codes of int8.
template <DType T>
struct Unit {
  using type = float;
  static constexpr int steps = 1;
};
template <>
struct Unit<DType::i8> {
  using type = int32_t;
  static constexpr int steps = 4;
};

__device__ __forceinline__ void multiply_add(float& sum, float a, float b) { sum = fmaf(a, b, sum); }
__device__ __forceinline__ void multiply_add(int32_t& sum, int32_t a, int32_t b) { sum = __dp4a(a, b, sum); }

template <SimtConfig C>
struct Simt {
  using Params = SimtParams;
  using A = Element<C.a>;
  using B = Element<C.b>;
  using Out = Element<C.out>;
  using Word = typename Unit<C.a>::type;
  static constexpr bool integers = C.a == DType::i8;
  static constexpr int threads = 256, steps = Unit<C.a>::steps;
  static constexpr int tile = C.block, depth = 16;  // units of k in shared memory
  static constexpr int pitch = tile + 4;
  static constexpr int own = tile / 16, half = own / 2;  // a thread's rows, and its columns in each half of the tile
  static constexpr int words = tile * depth / threads;   // that a thread loads of each operand
  static constexpr int columns = C.dual ? tile / 2 : tile;
  static constexpr int scale_block = 128;
  static_assert(C.block == 64 || C.block == 128);

  /// One operand's tile on its way to shared memory: unit u of thread t is (outer, k) at `place(u)`.
  template <class T, bool Outer>
  struct Stage {
    Word held[words];

    /// Four neighbours at a time, along k or along the outer axis.
    static __device__ int outer_of(int quad) {
      if constexpr (Outer) return (static_cast<int>(threadIdx.x) + quad * threads) % (tile / 4) * 4;
      else return (static_cast<int>(threadIdx.x) + quad * threads) / (depth / 4);
    }
    static __device__ int unit_of(int quad) {
      if constexpr (Outer) return (static_cast<int>(threadIdx.x) + quad * threads) / (tile / 4);
      else return (static_cast<int>(threadIdx.x) + quad * threads) % (depth / 4) * 4;
    }
    /// row(outer): address of (outer, 0), null past the end. `last` bounds k.
    template <class Row>
    __device__ void load(Row&& row, int64_t k_step, int k, int last, bool vectors) {
#pragma unroll
      for (int quad = 0; quad < words / 4; ++quad) {
        const int outer = outer_of(quad), from = k + unit_of(quad) * steps;
        if constexpr (!Outer) {
          const T* const at = row(outer);
          if (at != nullptr && vectors && from + 4 * steps <= last) load_vector(at + from, held + 4 * quad);
          else
#pragma unroll
            for (int i = 0; i < 4; ++i) held[4 * quad + i] = load_unit(at, k_step, from + i * steps, last);
        } else {
          const T* const at = row(outer);
          if (vectors && at != nullptr && row(outer + 3) != nullptr && from < last) load_vector(at + from * k_step, held + 4 * quad);
          else
#pragma unroll
            for (int i = 0; i < 4; ++i) held[4 * quad + i] = load_unit(row(outer + i), k_step, from, last);
        }
      }
    }
    __device__ void store(Word* shared) const {
#pragma unroll
      for (int quad = 0; quad < words / 4; ++quad) {
        Word* const at = shared + unit_of(quad) * pitch + outer_of(quad);
#pragma unroll
        for (int i = 0; i < 4; ++i) at[Outer ? i : i * pitch] = held[4 * quad + i];
      }
    }
    static __device__ void load_vector(const T* at, Word* to) {
      if constexpr (integers) {
        const auto v = *reinterpret_cast<const Vector<int32_t, 4>*>(at);
#pragma unroll
        for (int i = 0; i < 4; ++i) to[i] = v[i];
      } else {
        const auto v = *reinterpret_cast<const Vector<T, 4>*>(at);
#pragma unroll
        for (int i = 0; i < 4; ++i) to[i] = to_float(v[i]);
      }
    }
    static __device__ Word load_unit(const T* at, int64_t k_step, int k, int last) {
      Word word = 0;
      if (at == nullptr) return word;
      if constexpr (integers) {
        uint32_t codes = 0;
#pragma unroll
        for (int i = 0; i < 4; ++i)
          if (k + i < last) codes |= static_cast<uint32_t>(static_cast<uint8_t>(at[k + i])) << 8 * i;
        word = static_cast<int32_t>(codes);
      } else {
        if (k < last) word = to_float(at[k * k_step]);
      }
      return word;
    }
  };

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

  /// Sums of a tile, and int8's sums of columns of b, over reduction steps [first, last).
  static __device__ __forceinline__ void multiply(const Params& p, const Place& place, int first, int last, char* smem, Word (&sums)[own][own],
                                                  Word (&column_sums)[own]) {
    Word* const a_tile = reinterpret_cast<Word*>(smem);  // [2][depth][pitch]
    Word* const b_tile = a_tile + 2 * depth * pitch;
    const auto a_row = [&](int outer) -> const A* { return outer < place.rows ? place.a + outer * p.a.row : nullptr; };
    const auto b_row = [&](int outer) -> const B* {
      const bool up = C.dual && outer >= columns;
      const int n = place.column + (up ? outer - columns : outer);
      if (n >= p.n) return nullptr;
      return up ? place.b_up + n * p.b_up_row : place.b + n * p.b_row;
    };
    Stage<A, C.a_outer> a;
    Stage<B, C.b_outer> b;
    const int ty = static_cast<int>(threadIdx.x) / 16, tx = static_cast<int>(threadIdx.x) % 16;
    a.load(a_row, p.a_k, first, last, p.a_vectors);
    b.load(b_row, p.b_k, first, last, p.b_vectors);
    int buffer = 0;
    for (int k = first; k < last; k += depth * steps, buffer ^= 1) {
      a.store(a_tile + buffer * depth * pitch);
      b.store(b_tile + buffer * depth * pitch);
      __syncthreads();
      if (k + depth * steps < last) {
        a.load(a_row, p.a_k, k + depth * steps, last, p.a_vectors);
        b.load(b_row, p.b_k, k + depth * steps, last, p.b_vectors);
      }
#pragma unroll
      for (int u = 0; u < depth; ++u) {
        const Word* const left = a_tile + (buffer * depth + u) * pitch;
        const Word* const right = b_tile + (buffer * depth + u) * pitch;
        Word x[own], w[own];
        load_fragment(left + ty * half, left + tile / 2 + ty * half, x);
        load_fragment(right + tx * half, right + tile / 2 + tx * half, w);
#pragma unroll
        for (int i = 0; i < own; ++i)
#pragma unroll
          for (int j = 0; j < own; ++j) multiply_add(sums[i][j], x[i], w[j]);
        if constexpr (C.zero_point)
#pragma unroll
          for (int j = 0; j < own; ++j) multiply_add(column_sums[j], 0x01010101, w[j]);
      }
    }
    __syncthreads();  // the tiles are free
  }

  static __device__ __forceinline__ void load_fragment(const Word* low, const Word* high, Word (&to)[own]) {
    const auto a = *reinterpret_cast<const Vector<Word, half>*>(low), b = *reinterpret_cast<const Vector<Word, half>*>(high);
#pragma unroll
    for (int i = 0; i < half; ++i) to[i] = a[i], to[half + i] = b[i];
  }

  /// Row or column of a thread's i-th within the tile.
  static __device__ int place_of(int index, int i) { return (i < half ? 0 : tile / 2 - half) + index * half + i; }

  static __device__ __forceinline__ float column_scale(const Params& p, const Place& place, int n, int kb) {
    return place.column_scale == nullptr ? 1.0f : place.column_scale[n / p.column_scale_columns * p.column_scale_row + kb * p.column_scale_block];
  }

  static __device__ void run(const Params& p, uint32_t item, char* smem) {
    Place place;
    if (!find(p, item, place)) return;
    const int ty = static_cast<int>(threadIdx.x) / 16, tx = static_cast<int>(threadIdx.x) % 16;
    Word sums[own][own] = {}, column_sums[own] = {};
    if constexpr (C.blocked) {
      float values[own][own] = {};
      for (int first = 0, kb = 0; first < p.k; first += scale_block, ++kb) {
        multiply(p, place, first, min_of(p.k, first + scale_block), smem, sums, column_sums);
#pragma unroll
        for (int i = 0; i < own; ++i) {
          const int row = place_of(ty, i);
          const float left = place.row_scale == nullptr || row >= place.rows ? 1.0f : place.row_scale[row * p.row_scale.row + kb * p.row_scale_block];
#pragma unroll
          for (int j = 0; j < own; ++j) {
            const int n = place.column + place_of(tx, j);
            const float term = __fmul_rn(left, __fmul_rn(n < p.n ? column_scale(p, place, n, kb) : 1.0f, static_cast<float>(sums[i][j])));
            values[i][j] = kb == 0 ? term : __fadd_rn(values[i][j], term);
            sums[i][j] = 0;
          }
        }
      }
      store(p, place, ty, tx, [&](int i, int j, int row, int n) { return finish(p, place, values[i][j], row, n); });
    } else if constexpr (C.dual) {
      multiply(p, place, 0, p.k, smem, sums, column_sums);
      store(p, place, ty, tx, [&](int i, int j, int, int n) {
        const float gate = place.bias == nullptr ? sums[i][j] : sums[i][j] + to_float(place.bias[n]);
        const float up = place.bias_up == nullptr ? sums[i][half + j] : sums[i][half + j] + to_float(place.bias_up[n]);
        return from_float<Out>(activate<C.activation>(gate) * up);
      });
    } else {
      multiply(p, place, 0, p.k, smem, sums, column_sums);
      store(p, place, ty, tx, [&](int i, int j, int row, int n) {
        Word sum = sums[i][j];
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
  static __device__ __forceinline__ void store(const Params& p, const Place& place, int ty, int tx, Value&& value) {
#pragma unroll
    for (int i = 0; i < own; ++i) {
      const int row = place_of(ty, i);
      if (row >= place.rows) continue;
#pragma unroll
      for (int j = 0; j < (C.dual ? half : own); ++j) {
        const int n = place.column + place_of(tx, j);
        if (n < p.n) place.y[row * p.y.row + n] = value(i, j, row, n);
      }
    }
  }
};

}  // namespace cermet::gemm
