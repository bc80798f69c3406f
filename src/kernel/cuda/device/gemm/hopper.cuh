// GEMMs on Hopper's tensor cores (sm_90a): y[m, n] = E(sum over k of a[m, k] * b[n, k]), rows of a and b along k.
//
//   Tiles      An item is a tile of y: BLK_M = 64 or 128 rows, BLK_N = 32 .. 256 columns. A stage is 128 bytes of k of
//              all of its rows: BLK_K = 64 elements of 16 bits, 128 of 8. The thread blocks of a launch share out the
//              items, and a ring of stages in shared memory goes on from one item to the next.
//   Threads    warpgroups 0 .. BLK_M / 64 - 1    consumers: 64 rows of the tile each, a warp 16 of them
//              the last warpgroup                its first warp is the producer, the others wait for the end
//   Shared     0                   ring       [stages] of a (a_parts, BLK_M, 128 bytes), b (b_parts, BLK_N, 128 bytes)
//   memory     + stages * stage    staging    [BLK_M / 16 warps] (16, staging_pitch): results on their way out
//              + staging_bytes     columns    [consumers][BLK_N] of each operand of E with a value for each column
//              + column_bytes ..   full       [stages] barriers, 8 bytes each: a stage's copies have arrived
//              + 8 * stages        empty      [stages] barriers: all consumer warps have read a stage
//              Both operands have the 128-byte swizzle that TMA writes and wgmma reads. Example: bf16, 128 x 256: a
//              stage is 16 + 32 KiB, staging 64 KiB, and 3 stages fit.
//   Phases     preload()   before earlier launches have ended: the first stages of b, where no launch writes it
//              produce()   waits for empty[stage], TMA loads of a and b, which complete full[stage]
//              consume()   starts the loads of E's operands; the mainloop waits for full[stage], multiplies by wgmma,
//                          arrives at empty[stage]; then the epilogue (hopper_epilogue.cuh) sends the rows out, while
//                          the producer runs ahead into the block's next tile
//   Variants   a_parts: a is a sum of matrices; dual: two weights; groups (groups.cuh). Those with loads or a mainloop
//              of their own are in hopper_variants.cuh: WindowTile, a is the windows of a convolution; GatedMainloop, a
//              gate multiplies it; PromotedMainloop, sums of fp8 move from the accumulators of wgmma, which have 14
//              significant bits, to float32 registers
#pragma once

#include "kernel/cuda/device/gemm/groups.cuh"
#include "kernel/cuda/device/gemm/hopper_epilogue.cuh"
#include "kernel/cuda/device/gemm/hopper_variants.cuh"
#include "kernel/cuda/device/overlap.cuh"
#include "kernel/cuda/device/ptx/mbarrier.cuh"
#include "kernel/cuda/device/ptx/wgmma.cuh"

namespace cermet::gemm {

/// Which tile of y an item is. A whole warp constructs it.
template <HopperConfig C>
struct TileCoord {
  static constexpr int tiles_n = static_cast<int>(div_up(C.n, C.block_n));
  int row, rows_end;  // of a and y, within the group where groups are batches
  int n, group = 0;
  bool is_unweighted = false;  // no weight multiplies its rows

  __device__ TileCoord(const HopperParams& p, uint32_t item) {
    const uint32_t tiles_m = static_cast<uint32_t>(p.m + C.block_m - 1) / C.block_m;
    if constexpr (C.batched) {
      group = static_cast<int>(item / (tiles_m * tiles_n));
      item %= tiles_m * tiles_n;
    }
    if constexpr (C.grouped) {
      n = static_cast<int>(item % tiles_n) * C.block_n;
      const auto* const offsets = static_cast<const Element<C.offsets>*>(p.offsets);
      const int tile = static_cast<int>(item / tiles_n);
      const GroupTile found =
          C.few_rows ? find_group_of_few<C.unweighted>(offsets, p.groups, p.m, C.block_m, tile, p.by_number != 0)
                     : find_group(offsets, p.groups, p.m, C.block_m, tile);
      group = found.group, row = found.row, rows_end = found.rows_end;
      if (C.unweighted && group < 0 && row < rows_end)
        group = 0, is_unweighted = true;  // any group's values for columns do: they multiply zeros, as finite scales of
                                          // rows do
    } else {
      const uint32_t sweep = item / (C.raster * tiles_n), first = sweep * C.raster;
      const uint32_t at = item - sweep * (C.raster * tiles_n), size = min_of<uint32_t>(C.raster, tiles_m - first);
      n = static_cast<int>(at / size) * C.block_n;
      row = static_cast<int>(first + at % size) * C.block_m, rows_end = p.m;
    }
  }
  __device__ bool empty() const { return C.grouped && group < 0; }
};

/// E: the epilogue, see tile/epilogue.cuh.
template <HopperConfig C, class E>
struct Hopper {
  using Params = HopperParams;
  using A = Element<C.a>;
  using B = Element<C.b>;
  using Out = Element<E::out>;
  using Mma = ptx::Wgmma<C.block_n, A, B>;  // 64 x BLK_N, 32 bytes of k
  using Sum = typename Mma::Sum;
  using Tile = TileCoord<C>;

  static constexpr HopperConfig config = C;
  static constexpr int b_parts = C.dual ? 2 : 1;
  static constexpr bool ungrouped = !C.batched && !C.grouped;
  static constexpr HopperShape shape{C.block_m,   C.block_n,           C.a_parts, b_parts,
                                     sizeof(Out), ExtraPlan<E>::bytes, ungrouped, epilogue::second_bytes<E>()};
  static constexpr int row_bytes = HopperShape::row_bytes;
  static constexpr int a_bytes = C.block_m * row_bytes, b_bytes = C.block_n * row_bytes;  // of a tile
  static constexpr int consumers = shape.consumers();
  static constexpr int block_k = row_bytes / sizeof(A);
  static constexpr int k_tiles = static_cast<int>(div_up(C.k, block_k));
  static constexpr int acc_size = C.block_n / 2;                             // sums of a thread, of each part of b
  static constexpr int box_rows = C.few_rows ? hopper_few_rows : C.block_m;  // rows of a that a bulk copy takes
  /// Stages of b to preload. They are ahead of a in the queue of the copies, as prefetches to the L2 would be; four
  /// keep the memory busy until earlier launches have ended.
  static constexpr int preloads = C.preload_b ? min_of(4, min_of(C.stages, k_tiles)) : 0;

  static_assert(C.block_m == 64 || C.block_m == 128);
  static_assert(sizeof(A) == sizeof(B) && C.k > 0 && C.n > 0);
  static_assert(!C.preload_b || ungrouped || C.few_rows);
  static_assert(!C.few_rows || (C.grouped && C.block_m % box_rows == 0));
  static_assert(!C.unweighted || C.few_rows);
  static_assert(!C.gated || (sizeof(A) == 2 && C.promote == 0 && C.a_parts == 1 && ungrouped));
  static_assert(!C.blocked || (sizeof(A) == 1 && C.block_n == (C.dual ? 64 : 128)));
  // A tile of either weight is within a block of columns.
  static_assert(!C.blocked || !C.dual || !C.column_scale || C.n % 128 == 0);
  static_assert(C.windows.channels % block_k == 0 &&
                C.windows.channels * C.windows.kernel_h * C.windows.kernel_w == (C.windows.kernel_h > 0 ? C.k : 0));
  static_assert(C.windows.kernel_h == 0 || (C.a_parts == 1 && ungrouped));

  // ---- The ring

  struct Shared {
    char* ring;              // (stages, stage_bytes)
    char* staging;           // (BLK_M / 16, 16, staging_pitch)
    char* columns;           // (consumers, BLK_N, vector_bytes)
    uint64_t *full, *empty;  // (stages)

    __device__ explicit Shared(char* smem)
        : ring(smem), staging(ring + C.stages * shape.stage_bytes()), columns(staging + shape.staging_bytes()) {
      full = reinterpret_cast<uint64_t*>(columns + consumers * shape.column_bytes());
      empty = full + C.stages;
    }
    __device__ char* a(int stage, int part) const {  // (BLK_M, 128 bytes)
      return ring + stage * shape.stage_bytes() + part * a_bytes;
    }
    __device__ char* b(int stage, int part) const {  // (BLK_N, 128 bytes)
      return a(stage, C.a_parts) + part * b_bytes;
    }
  };

  using Slot = ptx::RingSlot<C.stages>;
  /// Sets up the barriers; counts the stages that the block's tiles have taken so far.
  struct Ring {
    uint32_t stages = 0;
    bool is_open = false;  ///< whether all threads know that the barriers are set up

    template <class Team>
    CERMET_DEVICE Ring(const Params& p, Team team, char* smem) {
      static_assert(Team::size == shape.threads());
      if (team.rank() != consumers * 128) return;  // the producer: others read parameters meanwhile
      const Shared shared(smem);
      for (int i = 0; i < C.stages; ++i) {
        ptx::mbarrier_init(shared.full + i, 1);
        ptx::mbarrier_init(shared.empty + i, consumers * 4);
      }
      ptx::fence_mbarrier_init();
      ptx::prefetch_tensor_map(&p.a);
      ptx::prefetch_tensor_map(&p.b);
      if constexpr (C.dual) ptx::prefetch_tensor_map(&p.b_up);
      ptx::fence_async_shared();
    }
    template <class Team>
    CERMET_DEVICE void close(const Params&, Team team, char* smem) {
      ptx::bulk_wait_read<0>();  // results have left the staging
      ptx::end_barriers(team, Shared(smem).full, 2 * C.stages);
    }
  };

  static CERMET_DEVICE void release(const Shared& shared, int stage) {
    if (lane_index() == 0) ptx::mbarrier_arrive(shared.empty + stage);
  }

  // ---- Producer: one thread

  /// A stage's tiles of b, from row `row` of the weights on.
  static CERMET_DEVICE void load_b(const Params& p, const Shared& shared, int stage, int kt, int row) {
    uint64_t* const full = shared.full + stage;
    ptx::tma_load_2d(shared.b(stage, 0), &p.b, kt * block_k, row, full);
    if constexpr (C.dual) ptx::tma_load_2d(shared.b(stage, 1), &p.b_up, kt * block_k, row, full);
  }

  /// Tiles of a, whose rows are those of a matrix.
  struct MatrixTile {
    const Params& p;
    const Shared& shared;
    int row, boxes;  ///< boxes: copies of box_rows rows for each part

    CERMET_DEVICE MatrixTile(const Params& p, const Shared& shared, const Tile& tile)
        : p(p),
          shared(shared),
          row(tile.row + (C.batched ? tile.group * p.a_group : 0)),
          boxes(C.few_rows ? (min_of(tile.rows_end - tile.row, C.block_m) + box_rows - 1) / box_rows : 1) {}
    CERMET_DEVICE uint32_t stage_bytes() const {
      return static_cast<uint32_t>(boxes * C.a_parts * box_rows * row_bytes);
    }
    CERMET_DEVICE void load(int kt, int stage) const {
#pragma unroll
      for (int part = 0; part < C.a_parts; ++part)
#pragma unroll
        for (int box = 0; box < C.block_m / box_rows; ++box)
          if (box < boxes)
            ptx::tma_load_2d(shared.a(stage, part) + box * box_rows * row_bytes, &p.a, kt * block_k,
                             row + part * p.a_part + box * box_rows, shared.full + stage);
    }
  };
  using TileOfA = Either<(C.windows.kernel_h > 0), WindowTile<Hopper>, MatrixTile>;

  /// The stages of a tile, of which the first `preloaded` have their tiles of b on the way. b_row: of the weights.
  static CERMET_DEVICE void produce(const Params& p, const Shared& shared, TileOfA a, int b_row, Slot slot,
                                    int preloaded) {
    int kt = 0;
    for (; kt < preloaded; ++kt, slot.advance()) {
      ptx::mbarrier_arrive_expect(shared.full + slot.stage, a.stage_bytes());
      a.load(kt, slot.stage);
    }
    for (; kt < k_tiles; ++kt, slot.advance()) {
      ptx::mbarrier_wait(shared.empty + slot.stage, slot.phase ^ 1);
      ptx::mbarrier_arrive_expect(shared.full + slot.stage, a.stage_bytes() + b_parts * b_bytes);
      a.load(kt, slot.stage);
      load_b(p, shared, slot.stage, kt, b_row);
    }
  }

  /// Whether the tiles of b of a block's first item follow from its number.
  static CERMET_DEVICE bool preloads_of(const Params& p, uint32_t item) {
    return preloads > 0 &&
           (!C.few_rows || (p.by_number != 0 && item < static_cast<uint32_t>(p.groups * Tile::tiles_n)));
  }
  static CERMET_DEVICE void preload(const Params& p, const Shared& shared, uint32_t item) {
    int row;  // of b
    if constexpr (C.few_rows)
      row = static_cast<int>(item % Tile::tiles_n) * C.block_n + static_cast<int>(item / Tile::tiles_n) * p.b_group;
    else row = Tile(p, item).n;
    if (preloads_of(p, item) && ptx::elect_one()) {
#pragma unroll 1
      for (int kt = 0; kt < preloads; ++kt) {
        ptx::mbarrier_expect(shared.full + kt, b_parts * b_bytes);
        load_b(p, shared, kt, kt, row);
      }
    }
  }
  /// Takes the stages that were preloaded for a group without rows.
  static CERMET_DEVICE void drain(const Shared& shared, bool produces, Slot slot, int preloaded) {
    for (int kt = 0; kt < preloaded; ++kt, slot.advance()) {
      if (produces) {
        if (ptx::elect_one()) ptx::mbarrier_arrive(shared.full + slot.stage);
      } else {
        ptx::mbarrier_wait(shared.full + slot.stage, slot.phase);
        release(shared, slot.stage);
      }
    }
  }

  // ---- Consumers: the mainloop

  /// Products of one stage, without waiting for them. acc: (b_parts, BLK_N / 2), a thread's share of 64 x BLK_N
  static CERMET_DEVICE void multiply_stage(const Shared& shared, int warpgroup, int stage, bool add,
                                           Sum (&acc)[b_parts][acc_size]) {
    ptx::wgmma_fence();
#pragma unroll
    for (int i = 0; i < 4; ++i)  // 32 bytes of k
#pragma unroll
      for (int part = 0; part < C.a_parts; ++part) {
        const uint64_t a = ptx::wgmma_descriptor(shared.a(stage, part) + warpgroup * 64 * row_bytes) + 2 * i;
#pragma unroll
        for (int side = 0; side < b_parts; ++side)
          Mma::multiply(acc[side], a, ptx::wgmma_descriptor(shared.b(stage, side)) + 2 * i, add || i > 0 || part > 0);
      }
    ptx::wgmma_commit();
  }

  /// One stage is multiplied while the next is waited for. ready(kt, stage): what is done with a stage's rows before.
  template <class Ready>
  static CERMET_DEVICE void multiply(const Shared& shared, int warpgroup, Slot slot, Sum (&acc)[b_parts][acc_size],
                                     Ready ready) {
    int previous = 0;
    for (int kt = 0; kt < k_tiles; ++kt, slot.advance()) {
      ptx::mbarrier_wait(shared.full + slot.stage, slot.phase);
      ready(kt, slot.stage);
      multiply_stage(shared, warpgroup, slot.stage, kt > 0, acc);
      ptx::wgmma_wait<1>();
      if (kt > 0) release(shared, previous);
      previous = slot.stage;
    }
    ptx::wgmma_wait<0>();
    release(shared, previous);
  }

  /// Total: the sums that the epilogue gets, here those in the accumulators.
  struct PlainMainloop {
    using Total = Sum;
    template <class Team>
    static CERMET_DEVICE void multiply(const Params&, const Shared& shared, Team, int warpgroup, const Tile&, int,
                                       Slot slot, Total (&total)[b_parts][acc_size]) {
      Hopper::multiply(shared, warpgroup, slot, total, [](int, int) {});
    }
  };
  using Mainloop = Either<(C.blocked || C.promote > 0), PromotedMainloop<Hopper>,
                          Either<C.gated, GatedMainloop<Hopper>, PlainMainloop>>;

  // ---- Consumers: a tile

  template <class Team>
  static CERMET_DEVICE void consume(const Params& p, const Shared& shared, Team team, int warpgroup, const Tile& tile,
                                    Slot slot) {
    constexpr int pieces = shape.pitch() / row_bytes;  // of 128 bytes of a row of results
    constexpr bool whole_tile = shape.bulk_results() && pieces * row_bytes == C.block_n * static_cast<int>(sizeof(Out));
    using Total = typename Mainloop::Total;
    using Epilogue = HopperEpilogue<E, C.block_n, C.n, b_parts, Total, whole_tile>;
    const int warp = static_cast<int>(team.warp()) % 4;
    const int row = tile.row + warpgroup * 64 + warp * 16;                    // of this warp's first
    char* const columns = shared.columns + warpgroup * shape.column_bytes();  // (BLK_N, vector_bytes)
    if constexpr (shape.vector_bytes > 0) {
      team.sync_part(warpgroup, 128);  // the previous tile's readers are done
      Epilogue::copy_columns(p.extra, p.column_sums, columns, static_cast<int>(team.rank()) % 128, tile.n, tile.group);
      ptx::cp_async_commit();
    }
    Total total[b_parts][acc_size];                                                              // (b_parts, BLK_N / 2)
    char* const staging = shared.staging + (warpgroup * 4 + warp) * 16 * shape.staging_pitch();  // (16, staging_pitch)
    Epilogue epilogue{p.extra, columns, total, row, tile.rows_end, tile.n, tile.group};
    epilogue.load_rows();
    epilogue.copy_to_staging(staging);

    if (C.unweighted && tile.is_unweighted) {
#pragma unroll
      for (int i = 0; i < b_parts * acc_size; ++i) total[i / acc_size][i % acc_size] = 0;
    } else {
      Mainloop::multiply(p, shared, team, warpgroup, tile, row, slot, total);
    }

    if constexpr (shape.vector_bytes > 0) {
      ptx::cp_async_wait<0>();
      team.sync_part(warpgroup, 128);
    } else if constexpr (Epilogue::Plan::in_staging >= 0) {
      ptx::cp_async_wait<0>();
      __syncwarp();
    }
    /// The warp's first row of a result of this tile.
    const auto rows_of = [&]<class T>(T* y, int64_t stride, int64_t group) {
      return y + (C.batched ? tile.group * group : 0) + row * stride + tile.n;
    };
    if constexpr (shape.bulk_results()) {
      epilogue.template store_bulk<pieces>(staging, &p.y_map);
    } else {
      epilogue.template store_rows<shape.chunk(), shape.pitch()>(
          staging, rows_of(static_cast<Out*>(p.y), p.y_stride, p.y_group), p.y_stride);
    }
    if constexpr (epilogue::gives_two<E>) {  // through the memory that the first result has left
      HopperEpilogue<typename E::Second, C.block_n, C.n, b_parts, Total, false> second{
          p.extra, columns, total, row, tile.rows_end, tile.n, tile.group};
      second.load_rows();
      ptx::bulk_wait_read<0>();
      using Second = Element<E::Second::out>;
      second.template store_rows<shape.second_chunk(), shape.second_pitch()>(
          staging, rows_of(static_cast<Second*>(p.second), p.second_stride, p.second_group), p.second_stride);
    }
  }

  // ---- The task (entry.cuh)

  /// In a walk (walk.cuh), before copies read them.
  static CERMET_DEVICE void acquire_maps(const Params& far) {
    ptx::acquire_tensor_map(&far.a);
    ptx::acquire_tensor_map(&far.b);
    if constexpr (C.dual) ptx::acquire_tensor_map(&far.b_up);
    if constexpr (shape.bulk_results()) ptx::acquire_tensor_map(&far.y_map);
  }

  /// Of a block's first tile: weights to the ring, and parameters to where consumers read them.
  template <class Team>
  static CERMET_DEVICE void fetch(const Params& p, uint32_t item, Team team, char* smem, Ring& ring) {
    if (ring.is_open) return;
    constexpr int after_maps = 4 * sizeof(TensorMapBytes),
                  unused = static_cast<int>((epilogue::most_extras - E::extras) * sizeof(epilogue::Operand));
    if (team.warp() < consumers * 4) {
      if (team.rank() >= 32) touch_parameters<after_maps, sizeof(Params) - after_maps - unused>(p);
    }
    if constexpr (preloads > 0) {
      if (team.warp() == consumers * 4) {
        __syncwarp();  // one of its threads has set up the barriers
        preload(p, Shared(smem), item);
        __syncwarp();
      }
    }
  }

  template <class Team>
  static CERMET_DEVICE void compute(const Params& p, uint32_t item, Team team, char* smem, Ring& ring) {
    const int preloaded = !ring.is_open && preloads_of(p, item) ? preloads : 0;
    if (!ring.is_open) team.sync();
    ring.is_open = true;
    const Shared shared(smem);
    const int warpgroup = __shfl_sync(0xffffffffu, static_cast<int>(team.rank()) / 128, 0);
    const Tile tile(p, item);
    const Slot slot(ring.stages);
    if (tile.empty()) {
      if constexpr (C.few_rows && preloads > 0) {
        if (warpgroup < consumers || team.warp() % 4 == 0) drain(shared, warpgroup == consumers, slot, preloaded);
        ring.stages += preloaded;
      }
      return;
    }
    if (C.unweighted && tile.is_unweighted) {
      if (warpgroup < consumers) consume(p, shared, team, warpgroup, tile, slot);
      return;
    }
    if (warpgroup == consumers) {
      if (team.warp() % 4 == 0 && ptx::elect_one())
        produce(p, shared, TileOfA(p, shared, tile), tile.n + tile.group * p.b_group, slot, preloaded);
      __syncwarp();
    } else {
      consume(p, shared, team, warpgroup, tile, slot);
    }
    ring.stages += k_tiles;
  }
};

}  // namespace cermet::gemm
