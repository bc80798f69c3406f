// A GEMM on CUDA cores of so few rows and columns that latency is its time, as of a router of experts:
// y[m, n] = E(sum over k of x[m, k] * w[n, k]). The threads of a block share k (split-k inside the block), so that
// tiles of 8 x 8 results give every SM of a large GPU work, and all that a block reads is on its way at once. No
// element is read twice in a block.
//
//   Tiles      An item is rows x columns results, at most 64. A stage is 1024 elements of k of all of its rows: four
//              neighbours for each of the 256 threads. As many stages are loaded at a time as registers hold.
//   Threads    all alike: a thread has sums of all results over its share of k
//   Registers  x (stages, rows, 4), w (stages, columns, 4), sums (rows * columns)
//   Shared     0   partial   (8 warps, rows * columns) float32: sums of each warp
//   memory
//   Phases     fetch()      weights that no launch writes, before earlier launches have ended
//              compute()    loads x, multiplies stage by stage while the next ones arrive
//              fold()       adds the sums of a warp's lanes by shuffles, halving what each keeps
//              finish()     adds what the warps have, one after the other; the first threads store the results
#pragma once

#include "kernel/cuda/device/gemm/simt_split_k.hpp"
#include "kernel/cuda/device/team.cuh"
#include "kernel/cuda/device/tile/store.cuh"

namespace cermet::gemm {

/// E: the epilogue, see tile/epilogue.cuh.
template <SimtSplitKConfig C, class E>
struct SimtSplitK {
  using Params = SimtSplitKParams;
  using X = Element<C.x>;
  using W = Element<C.w>;
  static constexpr SimtSplitKTile tile = C.tile;
  static constexpr int rows = tile.rows, columns = tile.columns, count = tile.sums(), run = SimtSplitKTile::run;
  static constexpr int k_tiles = static_cast<int>(div_up(C.k, SimtSplitKTile::stage)), stages = tile.stages(C.k);
  static constexpr int tiles_n = static_cast<int>(div_up(C.n, columns));
  static_assert(C.k % run == 0 && C.k > 0 && C.n > 0 && (rows & (rows - 1)) == 0 && (columns & (columns - 1)) == 0 &&
                count >= 4);
  static_assert(!E::column_sums);

  /// Two halves of a warp, and two quarters of each, have their rows or columns in another order, so that they need not
  /// choose which sums to exchange when these meet: sum i of a thread belongs to result i ^ order().
  static CERMET_DEVICE int order() {
    const int lane = static_cast<int>(lane_index());
    return (lane & 16) / 16 * (count / 2) + (lane & 8) / 8 * (count / 4);
  }

  /// Weights that are on their way from one half of the task to the other.
  struct Ring {
    Vector<W, run> w[stages][columns];
    bool is_used = false;  ///< whether an item's sums may still be read

    template <class Team>
    CERMET_DEVICE Ring(const Params&, Team, char*) {
      static_assert(Team::size == SimtSplitKTile::threads);
    }
    template <class Team>
    CERMET_DEVICE void close(const Params&, Team, char*) {}
  };

  /// First element of the thread's share of stage `kt`.
  template <class Team>
  static CERMET_DEVICE int first_of(Team team, int kt) {
    return kt * SimtSplitKTile::stage + static_cast<int>(team.rank()) * run;
  }
  /// `Count` rows from `row` on, in a thread's order; those past the last are that again.
  template <class T, int Count>
  static CERMET_DEVICE void load(const void* data, int64_t step, int row, int order, int last, int k,
                                 Vector<T, run> (&v)[Count]) {
    const T* const from = static_cast<const T*>(data) + k;
#pragma unroll
    for (int i = 0; i < Count; ++i) {
      v[i] = {};
      if (C.k % SimtSplitKTile::stage == 0 || k < C.k)
        v[i] = *reinterpret_cast<const Vector<T, run>*>(from + min_of(row + (i ^ order), last) * step);
    }
  }
  template <class Team>
  static CERMET_DEVICE void load_x(const Params& p, Team team, int kt, int row, Vector<X, run> (&v)[rows]) {
    load(p.x, p.x_row, row, order() / columns, p.m - 1, first_of(team, kt), v);
  }
  template <class Team>
  static CERMET_DEVICE void load_w(const Params& p, Team team, int kt, int column, Vector<W, run> (&v)[columns]) {
    load(p.w, p.w_row, column, order() % columns, C.n - 1, first_of(team, kt), v);
  }

  static CERMET_DEVICE void multiply(const Vector<X, run> (&x)[rows], const Vector<W, run> (&w)[columns],
                                     float (&sums)[count]) {
#pragma unroll
    for (int c = 0; c < columns; ++c)
#pragma unroll
      for (int i = 0; i < run; ++i) {
        const float weight = to_float(w[c].at[i]);
#pragma unroll
        for (int r = 0; r < rows; ++r)
          sums[r * columns + c] = fmaf(to_float(x[r].at[i]), weight, sums[r * columns + c]);
      }
  }

  /// Adds the sums of lanes that differ in `Lane`, of which each keeps half.
  template <int Lane, int Count>
  static CERMET_DEVICE void fold(float (&sums)[count]) {
    constexpr bool ordered = Lane >= 8;
    const bool upper = (lane_index() & Lane) != 0;
    if constexpr (Count == 1) sums[0] += __shfl_xor_sync(0xffffffffu, sums[0], Lane);
    else
#pragma unroll
      for (int i = 0; i < Count / 2; ++i) {
        const float low = sums[i], high = sums[i + Count / 2];
        sums[i] = (ordered || !upper ? low : high) + __shfl_xor_sync(0xffffffffu, ordered || !upper ? high : low, Lane);
      }
    if constexpr (Lane > 1) fold<Lane / 2, max_of(Count / 2, 1)>(sums);
  }

  template <class Team>
  static CERMET_DEVICE void fetch(const Params& p, uint32_t item, Team team, char*, Ring& ring) {
    if constexpr (C.preload_w) {
      const int column = static_cast<int>(item % tiles_n) * columns;
#pragma unroll
      for (int i = 0; i < stages; ++i) load_w(p, team, i, column, ring.w[i]);
    }
  }

  /// What sums begin with. Loads stay before the barrier, whose result the assembler cannot know: otherwise it asks for
  /// the later stages only when the first have arrived, to save registers.
  template <class Team>
  static CERMET_DEVICE float zero_after_loads([[maybe_unused]] Team team) {
    if constexpr (stages > 1 && requires { team.any(false); }) return team.any(false) ? 1.0f : 0.0f;
    else return 0.0f;
  }

  template <class Team>
  static CERMET_DEVICE void compute(const Params& p, uint32_t item, Team team, char* smem, Ring& ring) {
    const int row = static_cast<int>(item / tiles_n) * rows, column = static_cast<int>(item % tiles_n) * columns;
    Vector<X, run> x[stages][rows];
#pragma unroll
    for (int i = 0; i < stages; ++i) {
      if constexpr (!C.preload_w) load_w(p, team, i, column, ring.w[i]);
      load_x(p, team, i, row, x[i]);
    }
    float sums[count];
    const float zero = zero_after_loads(team);
#pragma unroll
    for (int i = 0; i < count; ++i) sums[i] = zero;
#pragma unroll 1
    for (int kt = 0; kt < k_tiles; kt += stages)
#pragma unroll
      for (int i = 0; i < stages; ++i) {
        if (kt + i >= k_tiles) break;
        multiply(x[i], ring.w[i], sums);
        if (kt + i + stages >= k_tiles) continue;
        load_w(p, team, kt + i + stages, column, ring.w[i]);
        load_x(p, team, kt + i + stages, row, x[i]);
      }
    fold<16, count>(sums);
    finish(p, team, row, column, sums, smem, ring);
  }

  /// Adds what the warps have, one after the other; the first threads store the results.
  template <class Team>
  static CERMET_DEVICE void finish(const Params& p, Team team, int row, int column, const float (&sums)[count],
                                   char* smem, Ring& ring) {
    constexpr int lane_sums = max_of(count / 32, 1), lanes = count / lane_sums,
                  stored = tile.stored();  // sums of a lane, lanes that have different ones
    float(*const partial)[count] = reinterpret_cast<float(*)[count]>(smem);  // (warps, count)
    if (ring.is_used) team.sync();
    ring.is_used = true;
    const int lane = static_cast<int>(lane_index()), thread = static_cast<int>(team.rank());
    if (lane % (32 / lanes) == 0)
#pragma unroll
      for (int i = 0; i < lane_sums; ++i) partial[team.warp()][lane / (32 / lanes) * lane_sums + i] = sums[i];
    team.sync();
    const int at = thread * stored, r = row + at / columns, c = column + at % columns;
    if (at >= count || r >= p.m) return;
    float total[stored] = {};
#pragma unroll
    for (int warp = 0; warp < SimtSplitKTile::warps; ++warp) {
      const auto more = *reinterpret_cast<const Vector<float, stored>*>(&partial[warp][at]);
#pragma unroll
      for (int i = 0; i < stored; ++i) total[i] += more.at[i];
    }
    epilogue::store_results<E>(p.extra, p.to, r, c, C.n, p.vectors, total);
  }
};

}  // namespace cermet::gemm
