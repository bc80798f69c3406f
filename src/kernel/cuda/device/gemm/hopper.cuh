// GEMMs on Hopper's tensor cores (sm_90a). A block computes tiles [block_m, block_n] of the result: a producer warp
// streams tiles of the operands through a ring in shared memory with bulk tensor copies; one consumer warpgroup for
// each 64 rows multiplies them with wgmma and sends its rows out. The producer runs ahead into the block's next tile
// while the consumers finish one.
#pragma once

#include "kernel/cuda/device/gemm/general_config.cuh"
#include "kernel/cuda/device/gemm/hopper_products.cuh"
#include "kernel/cuda/device/gemm/hopper_results.cuh"
#include "kernel/cuda/device/gemm/hopper_ring.cuh"
#include "kernel/cuda/device/gemm/hopper_tile.cuh"
#include "kernel/cuda/device/overlap.cuh"

namespace cermet::gemm {

/// E: the epilogue, see tile/epilogue.cuh.
template <HopperConfig C, class E>
struct Hopper {
  using Params = HopperParams;
  using A = Element<C.a>;
  using B = Element<C.b>;
  using Out = Element<E::out>;
  using Sum = typename SumOf<C.a>::type;
  using Products = HopperProducts<C, Hopper>;
  using Place = TileCoord<C>;
  static constexpr int b_parts = C.dual ? 2 : 1;
  static constexpr HopperShape shape{C.block_m,
                                     C.block_n,
                                     C.a_parts,
                                     b_parts,
                                     sizeof(Out),
                                     ColumnPlan<E>::bytes,
                                     C.grouping == Grouping::none,
                                     epilogue::also_bytes<E>()};
  using Ring = HopperRing<C, shape>;
  using Shared = typename Ring::Shared;
  using Slot = typename Ring::Slot;
  static constexpr int consumers = shape.consumers(), stage_bytes = shape.stage_bytes();
  static constexpr int row_elements = HopperShape::tile_row / sizeof(A);  // reduction steps of a stage
  static constexpr int k_tiles = static_cast<int>(div_up(C.k, row_elements));
  static constexpr int own = C.block_n / 2;                                  // sums of a thread, of each part of b
  static constexpr int box_rows = C.few_rows ? hopper_few_rows : C.block_m;  ///< rows of a that a bulk copy takes
  static constexpr int b_stage_bytes = b_parts * Ring::b_bytes;
  static constexpr int promote = C.blocked ? 1 : C.promote;
  /// Stages whose weights are asked for before earlier launches have ended. What is asked for early is ahead of the
  /// rows in the queue of the copies, prefetches to the L2 as well; four stages keep the memory busy meanwhile.
  static constexpr int early = C.early ? min_of(4, min_of(C.stages, k_tiles)) : 0;

  static_assert(C.block_m == 64 || C.block_m == 128);
  static_assert(sizeof(A) == sizeof(B));
  static_assert(C.k > 0 && C.n > 0);
  static_assert(!C.early || C.grouping == Grouping::none || C.few_rows);
  static_assert(!C.few_rows || (C.grouping == Grouping::offsets && C.block_m % box_rows == 0));
  static_assert(!C.rest || C.few_rows);
  static_assert(!C.gated || (sizeof(A) == 2 && promote == 0 && C.a_parts == 1 && C.grouping == Grouping::none));
  static_assert(!C.blocked || (sizeof(A) == 1 && C.block_n == (C.dual ? 64 : 128)));
  static_assert(!C.blocked || !C.dual || !C.column_scale ||
                C.n % 128 == 0);  // a tile of either half is within a block of columns

  static_assert(C.windows.channels % row_elements == 0 &&
                C.windows.channels * C.windows.kernel_h * C.windows.kernel_w == (C.windows.kernel_h > 0 ? C.k : 0));
  static_assert(C.windows.kernel_h == 0 || (C.a_parts == 1 && C.grouping == Grouping::none));

  /// Bytes of a's tiles in a stage, of which `boxes` are copied of each.
  static CERMET_DEVICE uint32_t a_stage_bytes(int boxes) {
    return boxes * C.a_parts * box_rows * HopperShape::tile_row;
  }
  static CERMET_DEVICE int boxes_of(const Place& place) {
    return C.few_rows ? (min_of(place.rows_end - place.row, C.block_m) + box_rows - 1) / box_rows : 1;
  }
  /// Whether the tiles of b of a block's first item can be told from its number.
  static CERMET_DEVICE bool starts_early(const Params& p, uint32_t item) {
    return early > 0 && (!C.few_rows || (p.by_number != 0 && item < static_cast<uint32_t>(p.groups * Place::tiles_n)));
  }
  /// A stage's tiles of b.
  static CERMET_DEVICE void load_b(const Params& p, const Shared& shared, int stage, int kt, int row) {
    uint64_t* const full = shared.full + stage;
    ptx::tma_load_2d(shared.b(stage, 0), &p.b, kt * row_elements, row, full);
    if constexpr (C.dual) ptx::tma_load_2d(shared.b(stage, 1), &p.b_up, kt * row_elements, row, full);
  }

  /// Stages of the ring, of which the first `begun` have their tiles of b on the way. load_a(kt, stage)
  template <class LoadA>
  static CERMET_DEVICE void produce_stages(const Params& p, const Shared& shared, Slot slot, int begun, int boxes,
                                           int b_row, LoadA load_a) {
    int kt = 0;
    if constexpr (early > 0)
      for (; kt < begun; ++kt, slot.advance()) {
        ptx::mbarrier_arrive_expect(shared.full + slot.stage, a_stage_bytes(boxes));
        load_a(kt, slot.stage);
      }
    for (; kt < k_tiles; ++kt, slot.advance()) {
      ptx::mbarrier_wait(shared.empty + slot.stage, slot.phase ^ 1);
      ptx::mbarrier_arrive_expect(shared.full + slot.stage, a_stage_bytes(boxes) + b_stage_bytes);
      load_a(kt, slot.stage);
      load_b(p, shared, slot.stage, kt, b_row);
    }
  }

  static CERMET_DEVICE void produce(const Params& p, const Shared& shared, const Place& place, Slot slot, int begun) {
    const int a_row = place.row + (C.grouping == Grouping::batches ? place.group * p.a_group : 0),
              b_row = place.n + place.group * p.b_group;
    const int boxes = boxes_of(place);
    if constexpr (C.windows.kernel_h > 0) {
      const WindowSource<C, row_elements> source(p, place.row);
      produce_stages(p, shared, slot, begun, boxes, b_row,
                     [&](int kt, int stage) { source.load(p, kt, shared.a(stage, 0), shared.full + stage); });
    } else {
      produce_stages(p, shared, slot, begun, boxes, b_row, [&](int kt, int stage) {
#pragma unroll
        for (int part = 0; part < C.a_parts; ++part)
#pragma unroll
          for (int box = 0; box < C.block_m / box_rows; ++box)
            if (box < boxes)
              ptx::tma_load_2d(shared.a(stage, part) + box * box_rows * HopperShape::tile_row, &p.a, kt * row_elements,
                               a_row + part * p.a_part + box * box_rows, shared.full + stage);
      });
    }
  }

  /// Takes the stages that were begun for a group without rows.
  static CERMET_DEVICE void drain(const Shared& shared, bool produces, Slot slot, int begun) {
    for (int kt = 0; kt < begun; ++kt, slot.advance()) {
      if (produces) {
        if (ptx::elect_one()) ptx::mbarrier_arrive(shared.full + slot.stage);
      } else {
        ptx::mbarrier_wait(shared.full + slot.stage, slot.phase);
        release(shared, slot.stage);
      }
    }
  }

  static CERMET_DEVICE void release(const Shared& shared, int stage) {
    if (lane_index() == 0) ptx::mbarrier_arrive(shared.empty + stage);
  }

  template <class Team>
  static CERMET_DEVICE void consume(const Params& p, const Shared& shared, Team team, int warpgroup, const Place& place,
                                    Slot slot) {
    using Total = typename SumOf<(promote > 0 ? DType::f32 : C.a)>::type;
    constexpr int pieces = shape.pitch() / HopperShape::tile_row;
    constexpr bool whole_tile =
        shape.bulk_results() && pieces * HopperShape::tile_row == C.block_n * static_cast<int>(sizeof(Out));
    using Results = HopperResults<E, C.block_n, C.n, b_parts, Total, whole_tile>;
    const int warp = static_cast<int>(team.warp()) % 4;
    const int row = place.row + warpgroup * 64 + warp * 16;  // of this warp's first
    char* const columns = shared.columns + warpgroup * shape.column_bytes();
    if constexpr (shape.vector_bytes > 0) {
      team.sync_part(warpgroup, 128);  // the previous tile's readers are done
      Results::fetch(p.extra, p.column_sums, columns, static_cast<int>(team.rank()) % 128, place.n, place.group);
      ptx::cp_async_commit();
    }
    Sum d[b_parts][own];
    float total[b_parts][promote > 0 ? own : 1];
    const auto& sums = [&]() -> const auto& {
      if constexpr (promote > 0) return total;
      else return d;
    }
    ();
    char* const staging = shared.staging + (warpgroup * 4 + warp) * 16 * shape.staging_pitch();
    Results results{p.extra, columns, sums, row, place.rows_end, place.n, place.group};
    results.load_rows();
    results.place(staging);
    if (C.rest && place.is_rest) {
#pragma unroll
      for (int i = 0; i < b_parts * own; ++i) {
        d[i / own][i % own] = 0;
        if constexpr (promote > 0) total[i / own][i % own] = 0;
      }
    } else if constexpr (promote > 0) Products::multiply_promoted(p, shared, warpgroup, place, slot, row, total);
    else if constexpr (C.gated) Products::multiply_gated(p, shared, team, warpgroup, place, slot, d);
    else Products::multiply(shared, warpgroup, slot, d, [](int, int) {});
    if constexpr (shape.vector_bytes > 0) {
      ptx::cp_async_wait<0>();
      team.sync_part(warpgroup, 128);
    } else if constexpr (Results::Plan::placed >= 0) {
      ptx::cp_async_wait<0>();
      __syncwarp();
    }
    if constexpr (shape.bulk_results()) {
      store_pieces<Out, C.block_n, pieces>(results, staging, &p.y_map, row, place.n);
    } else {
      Out* const y = static_cast<Out*>(p.y) + (C.grouping == Grouping::batches ? place.group * p.y_group : 0) +
                     row * p.y_stride + place.n;
      store_rows<Out, C.block_n, shape.chunk(), shape.pitch()>(results, staging, y, p.y_stride, place.rows_end - row,
                                                               C.n - place.n);
    }
    if constexpr (epilogue::gives_two<E>) {  // through the memory that the first result has left
      HopperResults<typename E::Also, C.block_n, C.n, b_parts, Total, false> second{
          p.extra, columns, sums, row, place.rows_end, place.n, place.group};
      second.load_rows();
      wait_for_rows();
      using T = Element<E::Also::out>;
      T* const y = static_cast<T*>(p.also) + (C.grouping == Grouping::batches ? place.group * p.also_group : 0) +
                   row * p.also_stride + place.n;
      store_rows<T, C.block_n, shape.also_chunk(), shape.also_pitch()>(second, staging, y, p.also_stride,
                                                                       place.rows_end - row, C.n - place.n);
    }
  }

#if defined(CERMET_WALK)
  static CERMET_DEVICE void acquire_maps(const Params& far) {
    ptx::acquire_tensor_map(&far.a);
    ptx::acquire_tensor_map(&far.b);
    if constexpr (C.dual) ptx::acquire_tensor_map(&far.b_up);
    if constexpr (shape.bulk_results()) ptx::acquire_tensor_map(&far.y_map);
  }
#endif

  /// Of a block's first tile: weights to the ring, and parameters to where consumers read them.
  template <class Team>
  static CERMET_DEVICE void fetch(const Params& p, uint32_t item, Team team, char* smem, Ring& ring) {
    if (ring.is_open) return;
    constexpr int after_maps = 4 * sizeof(TensorMapBytes),
                  extras = static_cast<int>(E::extras * sizeof(epilogue::Operand));
    constexpr int all_extras = static_cast<int>(epilogue::most_extras * sizeof(epilogue::Operand));
    if (team.warp() < consumers * 4) {
      if (team.rank() >= 32) touch_parameters<after_maps, sizeof(Params) - after_maps - all_extras + extras>(p);
    }
    if constexpr (early > 0) {
      if (team.warp() == consumers * 4) {
        __syncwarp();  // one of its threads has set up the barriers
        const Shared shared(smem);
        int row;  // of b
        if constexpr (C.few_rows)
          row =
              static_cast<int>(item % Place::tiles_n) * C.block_n + static_cast<int>(item / Place::tiles_n) * p.b_group;
        else row = Place(p, item).n;
        if (starts_early(p, item) && ptx::elect_one()) {
#pragma unroll 1
          for (int kt = 0; kt < early; ++kt) {
            ptx::mbarrier_expect(shared.full + kt, b_stage_bytes);
            load_b(p, shared, kt, kt, row);
          }
        }
        __syncwarp();
      }
    }
  }

  template <class Team>
  static CERMET_DEVICE void compute(const Params& p, uint32_t item, Team team, char* smem, Ring& ring) {
    const int begun = !ring.is_open && starts_early(p, item) ? early : 0;
    if (!ring.is_open) team.sync();
    ring.is_open = true;
    const Shared shared(smem);
    const int warpgroup = __shfl_sync(0xffffffffu, static_cast<int>(team.rank()) / 128, 0);
    const Place place(p, item);
    const Slot slot(ring.stages);
    if (place.empty()) {
      if constexpr (C.few_rows && early > 0) {
        if (warpgroup < consumers || team.warp() % 4 == 0) drain(shared, warpgroup == consumers, slot, begun);
        ring.stages += begun;
      }
      return;
    }
    if (C.rest && place.is_rest) {
      if (warpgroup < consumers) consume(p, shared, team, warpgroup, place, slot);
      return;
    }
    if (warpgroup == consumers) {
      if (team.warp() % 4 == 0 && ptx::elect_one()) produce(p, shared, place, slot, begun);
      __syncwarp();
    } else {
      consume(p, shared, team, warpgroup, place, slot);
    }
    ring.stages += k_tiles;
  }
};

}  // namespace cermet::gemm
