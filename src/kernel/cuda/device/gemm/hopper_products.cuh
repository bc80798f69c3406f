// What the consumers of the Hopper GEMM do with the stages of a tile: products by wgmma, of rows that a gate
// multiplies, and sums that move to other registers.
#pragma once

#include "kernel/cuda/device/gemm/hopper_gate.cuh"
#include "kernel/cuda/device/gemm/hopper_tile.cuh"
#include "kernel/cuda/device/ptx/mbarrier.cuh"
#include "kernel/cuda/device/ptx/wgmma.cuh"

namespace cermet::gemm {

/// H: the task, which says what its stages and its sums are.
template <HopperConfig C, class H>
struct HopperProducts {
  using Params = HopperParams;
  using A = typename H::A;
  using Sum = typename H::Sum;
  using Multiply = ptx::Wgmma<C.block_n, A, typename H::B>;
  using Place = typename H::Place;
  using Shared = typename H::Shared;
  using Slot = typename H::Slot;
  static constexpr int k_tiles = H::k_tiles, own = H::own, b_parts = H::b_parts, promote = H::promote;

  /// Products of one stage, without waiting for them.
  static CERMET_DEVICE void multiply_stage(const Shared& shared, int warpgroup, int stage, bool add,
                                           Sum (&d)[b_parts][own]) {
    ptx::wgmma_fence();
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int part = 0; part < C.a_parts; ++part) {
        const uint64_t a =
            ptx::wgmma_descriptor(shared.a(stage, part) + warpgroup * 64 * HopperShape::tile_row) + 2 * i;
#pragma unroll
        for (int side = 0; side < b_parts; ++side)
          Multiply::multiply(d[side], a, ptx::wgmma_descriptor(shared.b(stage, side)) + 2 * i,
                             add || i > 0 || part > 0);
      }
    ptx::wgmma_commit();
  }

  /// ready(kt, stage): what is done with a stage's rows before.
  template <class Ready>
  static CERMET_DEVICE void multiply(const Shared& shared, int warpgroup, Slot slot, Sum (&d)[b_parts][own],
                                     Ready ready) {
    int previous = 0;
    for (int kt = 0; kt < k_tiles; ++kt, slot.advance()) {
      ptx::mbarrier_wait(shared.full + slot.stage, slot.phase);
      ready(kt, slot.stage);
      multiply_stage(shared, warpgroup, slot.stage, kt > 0, d);
      ptx::wgmma_wait<1>();
      if (kt > 0) H::release(shared, previous);
      previous = slot.stage;
    }
    ptx::wgmma_wait<0>();
    H::release(shared, previous);
  }

  template <class Team>
  static CERMET_DEVICE void multiply_gated(const Params& p, const Shared& shared, Team team, int warpgroup,
                                           const Place& place, Slot slot, Sum (&d)[b_parts][own]) {
    HopperGate<A, C.k> gate(p, place.row + warpgroup * 64, static_cast<int>(team.rank()) % 128);
    gate.load(0);
    multiply(shared, warpgroup, slot, d, [&](int kt, int stage) {
      gate.scale(shared.a(stage, 0) + warpgroup * 64 * HopperShape::tile_row);
      if (kt + 1 < k_tiles) gate.load(kt + 1);
      team.sync_part(warpgroup, 128);
    });
  }

  /// As multiply, with sums that move to float32 registers every few stages, scaled where scales are of blocks.
  static CERMET_DEVICE void multiply_promoted(const Params& p, const Shared& shared, int warpgroup, const Place& place,
                                              Slot slot, int row, float (&total)[b_parts][own]) {
    Sum d[b_parts][own];
    const int lane = static_cast<int>(lane_index());
    const float* const column_scale =
        p.column_scale + place.group * p.column_scale_group + place.n / 128 * p.column_scale_step;
    const float* const row_scale = p.row_scale + static_cast<int64_t>(row + lane / 4) * p.row_scale_step;
#pragma unroll
    for (int i = 0; i < b_parts * own; ++i) total[i / own][i % own] = -0.0f;  // added to anything gives that
#pragma unroll 1
    for (int kt = 0; kt < k_tiles; kt += promote) {
      float left[2] = {1.0f, 1.0f}, right[b_parts];
#pragma unroll
      for (int part = 0; part < b_parts; ++part) right[part] = 1.0f;
      if constexpr (C.blocked) {
        if constexpr (C.column_scale)
#pragma unroll
          for (int part = 0; part < b_parts; ++part)
            right[part] = column_scale[part * (C.n / 128) * p.column_scale_step + kt];
        if constexpr (C.row_scale)
#pragma unroll
          for (int h = 0; h < 2; ++h)
            if (row + 8 * h + lane / 4 < place.rows_end)
              left[h] = row_scale[8 * h * p.row_scale_step + kt * p.row_scale_block];
      }
      int stages[promote];
#pragma unroll
      for (int i = 0; i < promote; ++i) {
        if (k_tiles % promote != 0 && kt + i >= k_tiles) break;
        stages[i] = slot.stage;
        ptx::mbarrier_wait(shared.full + slot.stage, slot.phase);
        multiply_stage(shared, warpgroup, slot.stage, i > 0, d);
        slot.advance();
      }
      ptx::wgmma_wait<0>();
#pragma unroll
      for (int i = 0; i < promote; ++i)
        if (k_tiles % promote == 0 || kt + i < k_tiles) H::release(shared, stages[i]);
#pragma unroll
      for (int i = 0; i < b_parts * own; ++i) {
        float term = static_cast<float>(d[i / own][i % own]);
        if constexpr (C.blocked) term = __fmul_rn(left[i / 2 % 2], __fmul_rn(right[i / own], term));
        total[i / own][i % own] = __fadd_rn(total[i / own][i % own], term);
      }
    }
  }
};

}  // namespace cermet::gemm
