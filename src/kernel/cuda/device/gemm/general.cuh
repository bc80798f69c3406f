// The GEMM that takes everything: any element types, layouts, alignments, tails, scales and groups on the CUDA cores,
// and those of 16 bits and int8 whose rows are aligned on the tensor cores of any architecture. A block computes a tile
// of the result.
#pragma once

#include "kernel/cuda/device/gemm/groups.cuh"
#include "kernel/cuda/device/gemm/simt_core.cuh"
#include "kernel/cuda/device/gemm/tensor_core.cuh"
#include "kernel/cuda/device/tile/epilogue.cuh"

namespace cermet::gemm {

template <GeneralConfig C, class Team, bool Tensor>
struct CoreOf {
  using type = SimtCore<C, Team>;
};
template <GeneralConfig C, class Team>
struct CoreOf<C, Team, true> {
  using type = TensorCore<C, Team>;
};

template <GeneralConfig C, class E, class Team>
struct GeneralBody {
  using Params = GeneralParams;
  using Core = typename CoreOf<C, Team, C.tensor>::type;
  using Sum = typename Core::Sum;
  using A = Element<C.a>;
  using B = Element<C.b>;
  using Out = Element<E::out>;
  using Values = epilogue::ValuesOf<E>;
  static constexpr int tile = C.block;
  static constexpr int own = Core::own, half = own / 2;  // a thread's rows, and its columns in each half of the tile
  static constexpr int columns = C.dual ? tile / 2 : tile;
  static constexpr int scale_block = 128;
  static_assert(C.block == 64 || C.block == 128);
  static_assert(Team::size == general_threads);

  /// What a tile of the result works on.
  struct Tile {
    const A* a;  // row `row`
    const B *b, *b_up;
    Out* y;                                    // row `row`, column 0
    void* second;                              // the second result
    const float *row_scale, *column_scale;     // of blocks
    const void* extra[epilogue::most_extras];  // row `row`
    int rows, column;                          // rows of the tile, first column
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
    return const_cast<T*>(static_cast<const T*>(operand.data)) + batch_offset(p, batch, operand.batch) +
           row * operand.row;
  }

  /// False where a tile has no rows.
  static __device__ bool find(const Params& p, uint32_t item, Tile& at) {
    const uint32_t tiles_m =
        static_cast<uint32_t>((p.m + tile - 1) / tile) + (C.grouped ? static_cast<uint32_t>(p.groups) : 0u);
    const uint32_t tiles_n = static_cast<uint32_t>((p.n + columns - 1) / columns);
    const uint32_t tile_m = item % tiles_m, batch = item / tiles_m / tiles_n;
    int row = static_cast<int>(tile_m) * tile, end = p.m, group = 0;
    if constexpr (C.grouped) {
      const GroupTile found =
          find_group(static_cast<const Element<C.offsets>*>(p.offsets), p.groups, p.m, tile, static_cast<int>(tile_m));
      if (found.group < 0) return false;
      row = found.row, end = found.rows_end, group = found.group;
    }
    at.rows = min_of(tile, end - row);
    at.column = static_cast<int>(item / tiles_m % tiles_n) * columns;
    at.a = rows_of<const A>(p, p.a, batch, row);
    const int64_t b_offset = batch_offset(p, batch, p.b_batch) + group * p.b_group;
    at.b = static_cast<const B*>(p.b) + b_offset;
    at.b_up = static_cast<const B*>(p.b_up) + b_offset;
    at.y = rows_of<Out>(p, p.y, batch, row);
    if constexpr (epilogue::gives_two<E>) at.second = rows_of<Element<E::Second::out>>(p, p.second, batch, row);
    at.row_scale = rows_of<const float>(p, p.row_scale, batch, row);
    at.column_scale = p.column_scale == nullptr ? nullptr : p.column_scale + group * p.column_scale_group;
    for_constants<E::extras>([&]<int I>(Constant<I>) {
      constexpr epilogue::Extra extra = E::extra[I];
      at.extra[I] =
          epilogue::address_of<extra>(p.extra[I].operand, row, 0, group) + batch_offset(p, batch, p.extra[I].batch);
    });
    return true;
  }

  static CERMET_DEVICE void multiply(const Params& p, const Tile& at, int first, int last, char* smem,
                                     Sum (&sums)[own][own]) {
    const auto a_row = [&](int outer) -> const A* { return outer < at.rows ? at.a + outer * p.a.row : nullptr; };
    const auto b_row = [&](int outer) -> const B* {
      const bool up = C.dual && outer >= columns;
      const int n = at.column + (up ? outer - columns : outer);
      if (n >= p.n) return nullptr;
      return up ? at.b_up + n * p.b_up_row : at.b + n * p.b_row;
    };
    Core::multiply(p, a_row, b_row, first, last, smem, sums);
  }

  static CERMET_DEVICE float column_scale(const Params& p, const Tile& at, int n, int kb) {
    return at.column_scale == nullptr
               ? 1.0f
               : at.column_scale[n / p.column_scale_columns * p.column_scale_row + kb * p.column_scale_block];
  }

  static __device__ void run(const Params& p, uint32_t item, char* smem) {
    Tile at;
    if (!find(p, item, at)) return;
    Sum sums[own][own] = {};
    if constexpr (C.blocked) {
      float values[own][own] = {};
      for (int first = 0, kb = 0; first < p.k; first += scale_block, ++kb) {
        multiply(p, at, first, min_of(p.k, first + scale_block), smem, sums);
        add_block(p, at, kb, sums, values);
      }
      store(p, at, [&]<class Result>(epilogue::Which<Result>, int i, int j, int, const Values& x) {
        if constexpr (C.dual) return Result::value(values[i][j], values[i][half + j], x);
        else return Result::value(values[i][j], x);
      });
    } else {
      multiply(p, at, 0, p.k, smem, sums);
      store(p, at, [&]<class Result>(epilogue::Which<Result>, int i, int j, int n, const Values& x) {
        if constexpr (C.dual) return Result::value(sums[i][j], sums[i][half + j], x);
        else if constexpr (E::column_sums) return Result::value(sums[i][j], p.column_sums[n], x);
        else return Result::value(sums[i][j], x);
      });
    }
  }

  /// Adds the scaled sums of a block of the reduction, and clears them. The scales of a second weight, which is the
  /// other half of the first, follow its own.
  static CERMET_DEVICE void add_block(const Params& p, const Tile& at, int kb, Sum (&sums)[own][own],
                                      float (&values)[own][own]) {
#pragma unroll
    for (int i = 0; i < own; ++i) {
      const int row = Core::row_of(i);
      const float left = at.row_scale == nullptr || row >= at.rows
                             ? 1.0f
                             : at.row_scale[row * p.row_scale.row + kb * p.row_scale_block];
#pragma unroll
      for (int j = 0; j < own; ++j) {
        const bool up = C.dual && j >= half;
        const int n = at.column + Core::column_of(j) - (up ? columns : 0);
        const float right = n < p.n ? column_scale(p, at, up ? n + p.n : n, kb) : 1.0f;
        const float term = __fmul_rn(left, __fmul_rn(right, static_cast<float>(sums[i][j])));
        values[i][j] = kb == 0 ? term : __fadd_rn(values[i][j], term);
        sums[i][j] = 0;
      }
    }
  }

  /// value(which result, i, j, column, values of the extras) for each element of the thread; a dual product has half as
  /// many.
  template <class Value>
  static CERMET_DEVICE void store(const Params& p, const Tile& at, Value&& value) {
    epilogue::Operand extra[epilogue::most_extras];
    for_constants<E::extras>([&]<int I>(Constant<I>) {
      extra[I] = p.extra[I].operand;
      extra[I].data = at.extra[I];
    });
#pragma unroll
    for (int i = 0; i < own; ++i) {
      const int row = Core::row_of(i);
      if (row >= at.rows) continue;
      Values x;
      epilogue::load_row<E>(extra, row, 0, x);
#pragma unroll
      for (int j = 0; j < (C.dual ? half : own); ++j) {
        const int n = at.column + Core::column_of(j);
        if (n >= p.n) continue;
        epilogue::load_place<E>(extra, row, n, 0, x);
        at.y[row * p.y.row + n] = epilogue::rounded<Out>(value(epilogue::Which<E>{}, i, j, n, x));
        if constexpr (epilogue::gives_two<E>) {
          using Second = typename E::Second;
          using T = Element<Second::out>;
          static_cast<T*>(at.second)[row * p.second.row + n] =
              epilogue::rounded<T>(value(epilogue::Which<Second>{}, i, j, n, x));
        }
      }
    }
  }
};

/// E: the epilogue, see tile/epilogue.cuh.
template <GeneralConfig C, class E>
struct General {
  using Params = GeneralParams;

  template <class Team>
  static CERMET_DEVICE void run(const Params& p, uint32_t item, Team, char* smem) {
    GeneralBody<C, E, Team>::run(p, item, smem);
  }
};

}  // namespace cermet::gemm
