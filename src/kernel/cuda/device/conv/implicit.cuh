// A convolution over nhwc tensors as a matrix product whose left operand is never written: a block computes a tile of
// places and output channels, and gathers its windows from x on the way into shared memory. Tiles are those of the
// general GEMM: mma.sync, or float32 on the CUDA cores.
#pragma once

#include "kernel/cuda/device/conv/windows.cuh"
#include "kernel/cuda/device/gemm/simt_core.cuh"
#include "kernel/cuda/device/gemm/tensor_core.cuh"
#include "kernel/cuda/device/tile/store.cuh"

namespace cermet::conv {

template <ImplicitConfig C, class E, class Team>
struct ImplicitBody {
  using T = Element<C.type>;
  static constexpr gemm::GeneralConfig product{
      .a = C.type, .b = C.type, .tensor = C.tensor, .block = C.block, .stages = C.stages};
  static constexpr int tile = C.block, threads = gemm::general_threads, own = tile / 16;
  // Four threads read the steps of a row, 16 bytes each.
  static constexpr int run = per_16_bytes<T>, row_threads = 4, windows = tile * row_threads / threads,
                       apart = threads / row_threads;

  /// What a tile works on.
  struct Tile {
    int row, group, column, end;  ///< first place; columns of the group in the tile
    const T* weight;              ///< row `column`
  };

  static CERMET_DEVICE Tile find(const ImplicitParams& p, uint32_t item) {
    const uint32_t tiles = static_cast<uint32_t>((p.group_outputs + tile - 1) / tile),
                   groups = static_cast<uint32_t>(p.groups);
    Tile block;
    block.row = static_cast<int>(item / (tiles * groups)) * tile;
    block.group = static_cast<int>(item / tiles % groups);
    const int begin = block.group * p.group_outputs;
    block.column = begin + static_cast<int>(item % tiles) * tile;
    block.end = begin + p.group_outputs;
    block.weight = static_cast<const T*>(p.weight) + static_cast<int64_t>(block.column) * p.k;
    return block;
  }

  /// Starts the copies of the windows' next steps into a slab of the tensor cores.
  template <class Core, class Reader>
  static CERMET_DEVICE void fill_slab(const ImplicitParams& p, Reader& reader, char* slab) {
    char* const to = slab + static_cast<int>(Team::rank()) / row_threads * Core::inner_pitch +
                     static_cast<int>(Team::rank()) % row_threads * 16;
    if constexpr (C.vectors) {
#pragma unroll
      for (int i = 0; i < windows; ++i) {
        const T* const from = reader.address(i);
        ptx::cp_async<16>(to + i * apart * Core::inner_pitch, from != nullptr ? static_cast<const void*>(from) : p.x,
                          from != nullptr ? 16 : 0);
      }
      reader.advance(row_threads * run);
    } else {
      T elements[windows][run];
      reader.take(elements);
#pragma unroll
      for (int i = 0; i < windows; ++i)
        epilogue::store_run(reinterpret_cast<T*>(to + i * apart * Core::inner_pitch), elements[i]);
      reader.advance((row_threads - 1) * run);
    }
  }

  /// The same into a stage of the CUDA cores.
  template <class Stage, class Reader>
  static CERMET_DEVICE void fill_stage(Reader& reader, Stage& stage) {
    if constexpr (C.vectors) {
#pragma unroll
      for (int i = 0; i < windows; ++i) {
        const T* const from = reader.address(i);
        Vector<T, run> v{};
        if (from != nullptr) v = *reinterpret_cast<const Vector<T, run>*>(from);
#pragma unroll
        for (int e = 0; e < run; ++e) stage.held[i * run + e] = v[e];
      }
      reader.advance(row_threads * run);
    } else {
      T elements[windows][run];
      reader.take(elements);
#pragma unroll
      for (int i = 0; i < windows; ++i)
#pragma unroll
        for (int e = 0; e < run; ++e) stage.held[i * run + e] = elements[i][e];
      reader.advance((row_threads - 1) * run);
    }
  }

  static CERMET_DEVICE void run_tensor(const ImplicitParams& p, const Tile& block, char* smem) {
    using Core = gemm::TensorCore<product, Team>;
    static_assert(Core::slab == row_threads * run);
    const int rank = static_cast<int>(Team::rank());
    Windows<T, windows> reader(p, block.row + rank / row_threads, apart, block.group, rank % row_threads * run);
    const auto b_row = [&](int outer) -> const T* {
      return block.column + outer < block.end ? block.weight + static_cast<int64_t>(outer) * p.k : nullptr;
    };
    float sums[own][own] = {};
    Core::multiply_slabs(0, p.k, smem, sums, [&](int k, char* a, char* b) {
      fill_slab<Core>(p, reader, a);
      Core::template load<false>(b_row, 1, k, p.k, b);
    });
    // Half of the rows at a time go through shared memory, so that neighbouring threads store neighbouring results.
    constexpr int pitch = tile + 8, results = 8, per_row = tile / results;
    float* const staged = reinterpret_cast<float*>(smem);
#pragma unroll 1
    for (int half = 0; half < 2; ++half) {
      const int begin = half * (tile / 2);
      if (Core::warp_row() == begin) {
#pragma unroll
        for (int i = 0; i < own; ++i)
#pragma unroll
          for (int j = 0; j < own; j += 2)
            *reinterpret_cast<Vector<float, 2>*>(staged + (Core::row_of(i) - begin) * pitch + Core::column_of(j)) = {
                sums[i][j], sums[i][j + 1]};
      }
      Team::sync();
#pragma unroll 1
      for (int at = rank; at < tile / 2 * per_row; at += threads) {
        const int row = at / per_row, column = at % per_row * results;
        if (block.row + begin + row >= p.m || block.column + column >= block.end) continue;
        float values[results];
#pragma unroll
        for (int i = 0; i < results; i += 4) {
          const auto v = *reinterpret_cast<const Vector<float, 4>*>(staged + row * pitch + column + i);
          values[i] = v[0], values[i + 1] = v[1], values[i + 2] = v[2], values[i + 3] = v[3];
        }
        epilogue::store_results<E>(p.extra, p.to, block.row + begin + row, block.column + column, block.end, p.vectors,
                                   values);
      }
      Team::sync();
    }
  }

  static CERMET_DEVICE void run_simt(const ImplicitParams& p, const Tile& block, char* smem) {
    using Core = gemm::SimtCore<product, Team>;
    static_assert(Core::depth == row_threads * run && Core::words == windows * run);
    const int rank = static_cast<int>(Team::rank());
    Windows<T, windows> reader(p, block.row + rank / row_threads, apart, block.group, rank % row_threads * run);
    const auto b_row = [&](int outer) -> const T* {
      return block.column + outer < block.end ? block.weight + static_cast<int64_t>(outer) * p.k : nullptr;
    };
    float sums[own][own] = {};
    Core::multiply_stages(0, p.k, smem, sums, [&](int k, auto& a, auto& b) {
      fill_stage(reader, a);
      b.load(b_row, 1, k, p.k, true);
    });
    constexpr int results = own / 2;
#pragma unroll
    for (int i = 0; i < own; ++i) {
      const int row = block.row + Core::row_of(i);
      if (row >= p.m) continue;
#pragma unroll
      for (int j = 0; j < own; j += results) {
        const int column = block.column + Core::column_of(j);
        if (column >= block.end) continue;
        float values[results];
#pragma unroll
        for (int r = 0; r < results; ++r) values[r] = sums[i][j + r];
        epilogue::store_results<E>(p.extra, p.to, row, column, block.end, p.vectors, values);
      }
    }
  }
};

/// E: the epilogue, see tile/epilogue.cuh.
template <ImplicitConfig C, class E>
struct Implicit {
  using Params = ImplicitParams;

  template <class Team>
  static CERMET_DEVICE void run(const Params& p, uint32_t item, Team, char* smem) {
    using Body = ImplicitBody<C, E, Team>;
    const auto block = Body::find(p, item);
    if constexpr (C.tensor) Body::run_tensor(p, block, smem);
    else Body::run_simt(p, block, smem);
  }
};

}  // namespace cermet::conv
