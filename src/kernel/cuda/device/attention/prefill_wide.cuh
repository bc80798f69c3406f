// Attention of many queries with wide heads on Hopper (sm_90a), 16 bits: o[r] = sum over keys of
// softmax(scale * q[r] . k)[j] * v[j] for keys of up to 576 columns and values of up to 512, which may be the first
// columns of the keys in the same memory, as multi-head latent attention has them.
//
//   Tiles      An item is 64 rows, query x head of a group that shares a key-value head: 64 / group tokens, or one
//              token's next 64 heads of a larger group. Tiles have 64 keys; tile t is in region t % 2. The two blocks
//              of a cluster have neighbouring rows and the same tiles of keys.
//   Threads    warpgroup w = 0, 1   makes weights of tiles 2 i + w, and half w of the columns of the results with all
//                                   weights: 128 registers of results, 32 of scores, 16 + 16 of weights
//              warpgroup 2          warp 0 copies, half of each piece to both blocks; warp 1 finds items; others leave
//   Shared     all in pieces of 64 rows x 64 columns, 8 KiB, with 128-byte swizzle     576, 512   512 and 512
//   memory     0               queries    pieces of the head                               72 KiB       64 KiB
//              + queries ..    region 0   keys, in their place values where those are     72           64
//              + region ..     region 1   others; results leave through the values of      72           64
//                                         the last tile
//              + region ..     weights    [2], of tiles 2 i and 2 i + 1; none where        0           16
//                                         keys have columns that are no values: there
//              + weights ..    rows       [2][128]: what weights are relative to; sums     4            4
//              + 4 KiB ..      notes      [2] of 64 bytes: items
//              + 128 ..        barriers   full and empty of every step: one or two pieces
//   Phases     of warpgroup 0 for tiles 2 i, 2 i + 1     of warpgroup 1
//                S0 becomes weights P0, to 1               S1 = Q K1^T, begins
//                O += P0 V0                                P0 from 0; O += P0 V0, begins
//                P1 from 1                                 S1 becomes weights P1, to 0
//                O += P1 V1, S0 = Q K0^T of the next       O += P1 V1
//              Each waits for steps as they arrive, and frees them as it has read them: keys, values and the next tiles
//              arrive in the order in which they are multiplied. Nothing is under way when a loop begins again.
//              Weights are relative to a base of their row, which moves when a maximum is 2^8 above it. It goes with
//              the weights to the other warpgroup, which then multiplies its results and sums, too.
//   Bytes      of a tile: 128 KEYS (D + Dv) operations: 2,176 cycles of the tensor cores for 576 and 512, 2,048 for 512
//              and 512. To the SM 72 KiB, 34 bytes a cycle; values of their own 128 KiB, 64 bytes a cycle; of the L2
//              half of it where two blocks share. Shared memory, of 128 bytes a cycle: 64 rows of queries with each 64
//              keys 1,152 cycles, values 512, copies 576; 1,024, 512 and 1,024. Predicted, at 40 bytes a cycle: the
//              tensor cores are busy for 0.84 of the time with values in keys, for 0.63 with others.
#pragma once

#include "kernel/cuda/device/attention/prefill_tma_output.cuh"
#include "kernel/cuda/device/attention/prefill_wide_copy.cuh"
#include "kernel/cuda/device/overlap.cuh"
#include "kernel/cuda/device/ptx/barrier.cuh"
#include "kernel/cuda/device/ptx/mbarrier.cuh"
#include "kernel/cuda/device/ptx/tma.cuh"
#include "kernel/cuda/device/ptx/wgmma.cuh"

#if CERMET_ARCH >= 900
namespace cermet::attention {

template <WidePrefillConfig C>
struct WidePrefillTask {
  using Params = TmaPrefillParams;
  using T = Element<C.kv>;
  static constexpr int keys = C.keys, steps = keys / 16;
  using Shared = WideShared<C>;
  static constexpr int key_pieces = Shared::key_pieces, value_pieces = Shared::value_pieces, slots = Shared::slots,
                       half = Shared::half;

  // ---- Consumers: warpgroup W

  template <int W, class Team>
  struct Consumer {
    /// Pieces of a product with values; groups of products that are waited for one by one.
    static constexpr int wide = Shared::wide, value_groups = (W == 0 ? half : value_pieces - half) / wide;
    static constexpr int key_steps = Shared::key_steps;
    /// Steps of its next scores that begin before it waits for the other's weights. All of them, for the odd ones: then
    /// weights are made while the products with values are under way.
    static constexpr int early = W == 0 ? min_of(C.early_even, key_steps - 1) : min_of(C.early_odd, key_steps);
    static constexpr int first_column = W * C.value_columns();
    static constexpr int columns = min_of(C.value_size - first_column, C.value_columns());
    using Output = float[half / wide][32 * wide];
    using Weights = uint32_t[steps][4];

    const Params& params;
    const Shared& shared;
    Team team;
    int warp, thread;  // of the warpgroup
    PrefillScores<C> softmax;
    uint32_t done[2];  // tiles of each region

    CERMET_DEVICE Consumer(const Params& params, const Shared& shared, Team team)
        : params(params), shared(shared), team(team), done{0, 0} {
      warp = static_cast<int>(team.warp() % 4), thread = static_cast<int>(team.rank() % 128);
      softmax.first_row = 16 * warp + static_cast<int>(lane_index()) / 4;
    }

    /// Starts scores = queries * keys of the warpgroup's region, in steps [From, To). After each it calls between(step,
    /// groups), with those groups under way that are none of values'. Keys that hold no values are freed soon.
    template <int From, int To, class Between>
    CERMET_DEVICE void multiply_keys(float (&scores)[keys / 2], Between between) const {
      const int here = not_hoisted(0);  // descriptors of all calls would be kept in registers
#pragma unroll
      for (int i = From; i < To; ++i) {
        const int first = Shared::key_step(i);
        ptx::mbarrier_wait(shared.full_of(W, first), Shared::key_phase(first, done[W]));
        ptx::wgmma_fence();
#pragma unroll
        for (int piece = first; piece < first + Shared::key_step_pieces(i); ++piece) {
          const uint64_t a = ptx::wgmma_descriptor(shared.queries + here + piece * C.piece_bytes),
                         b = ptx::wgmma_descriptor(shared.at(W, piece) + here);
#pragma unroll
          for (int step = 0; step < 4; ++step)
            if (64 * piece + 16 * step < C.head_size)
              ptx::Wgmma<keys, T, T>::multiply(scores, a + 2 * step, b + 2 * step, i > 0 || piece > first || step > 0);
        }
        if constexpr (C.values_in_keys) {
          between(i - From, 0);
        } else {
          ptx::wgmma_commit();
          between(i - From, i - From + 1);
          if (i > From) {
            ptx::wgmma_wait<1>();
            free_keys(i - 1);
          }
        }
      }
      if constexpr (C.values_in_keys && From < To) ptx::wgmma_commit();
    }
    /// Unless weights take their place.
    CERMET_DEVICE void free_keys(int step) const {
      if (Shared::key_step(step) != value_pieces) shared.free(W, Shared::key_step(step));
    }

    /// When the scores are there, whose steps from Split on began later than the others.
    template <int Split>
    CERMET_DEVICE void end_keys(float (&scores)[keys / 2]) const {
      touch(scores);
      if constexpr (C.values_in_keys) {
#pragma unroll
        for (int i = 0; i < Shared::only_keys; ++i) free_keys(i);
      } else {
        free_keys(key_steps - 1);
        if (Split > 0 && Split < key_steps) free_keys(Split - 1);
      }
    }

    /// Steps from `early` on, while products with the other tile's values are under way, whose pieces it frees.
    CERMET_DEVICE void finish_keys(float (&scores)[keys / 2], Weights& weights, Output& output) const {
      multiply_keys<early, key_steps>(scores, [&](int i, int later) {
        if (i < value_groups) finish_group(1 - W, i, later);
      });
      ptx::wgmma_wait<0>();
#pragma unroll
      for (int group = key_steps - early; group < value_groups; ++group) free_values(1 - W, group);
      touch(weights, output);
      end_keys<early>(scores);
    }

    /// Starts output += weights * values of a region.
    template <int Region>
    CERMET_DEVICE void multiply_values(const Weights& weights, Output& output) const {
#pragma unroll
      for (int group = 0; group < value_groups; ++group) {
        const int first = W * half + group * wide;
        if constexpr (Region != W || !C.values_in_keys)
          ptx::mbarrier_wait(shared.full_of(Region, first), Shared::value_phase(first, done[Region]));
        ptx::wgmma_fence();
        const uint64_t b = ptx::wgmma_descriptor_columns(shared.at(Region, first), C.piece_bytes);
#pragma unroll
        for (int step = 0; step < steps; ++step)
          ptx::WgmmaRows<64 * wide, T>::multiply(output[group], weights[step], b + 128 * step);
        ptx::wgmma_commit();
      }
    }

    /// Waits for a group of those results, after which `later` groups began, and frees its values unless their place is
    /// kept.
    CERMET_DEVICE void finish_group(int region, int group, int later, bool keeps = false) const {
      wait_for_all_but<value_groups>(value_groups - 1 - group + later);
      if (!keeps) free_values(region, group);
    }
    CERMET_DEVICE void free_values(int region, int group) const { shared.free(region, W * half + group * wide); }
    template <int Region>
    CERMET_DEVICE void finish_values(Weights& weights, Output& output, bool keeps = false) const {
#pragma unroll
      for (int group = 0; group < value_groups; ++group) finish_group(Region, group, 0, keeps);
      touch(weights, output);
    }
    static CERMET_DEVICE void touch(Weights& weights, Output& output) {
#pragma unroll
      for (int group = 0; group < value_groups; ++group) touch(output[group]);
#pragma unroll
      for (int i = 0; i < 4 * steps; ++i) asm volatile("" : "+r"(weights[i / 4][i % 4])::"memory");
    }

    /// Waits until only the last `groups` are under way, of at most so many.
    template <int Most>
    static CERMET_DEVICE void wait_for_all_but(int groups) {
      if constexpr (Most > 0)
        if (groups < Most) return wait_for_all_but<Most - 1>(groups);
      ptx::wgmma_wait<Most>();
    }
    template <int size>
    static CERMET_DEVICE void touch(float (&list)[size]) {
#pragma unroll
      for (int i = 0; i < size; ++i) ptx::wgmma_touch(list[i]);
    }

    // ---- Weights

    static CERMET_DEVICE void scale(Output& output, const float (&factor)[2]) {
#pragma unroll
      for (int group = 0; group < value_groups; ++group)
#pragma unroll
        for (int d = 0; d < 32 * wide; ++d) output[group][d] *= factor[d / 2 % 2];
    }

    /// Scores of the tile at `first` become weights. Returns whether results are to be multiplied with `shrink`.
    CERMET_DEVICE bool weigh(const PrefillNote& note, int first, float (&scores)[keys / 2], float (&shrink)[2]) {
      constexpr float room = 8.0f;
      const float factor = softmax.finish(params, note, first, nullptr, scores);
      const float top[2] = {largest_score(scores, 0) * factor, largest_score(scores, 1) * factor};
      const bool moves = __any_sync(0xffffffffu, top[0] > softmax.base[0] + room || top[1] > softmax.base[1] + room);
      if (moves) move({fmaxf(top[0], softmax.base[0]), fmaxf(top[1], softmax.base[1])}, shrink);
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        float most;
        softmax.sum[h] += softmax.weigh(scores, h, factor, most);
      }
      return moves;
    }

    CERMET_DEVICE void move(float2 base, float (&shrink)[2]) {
      const float to[2] = {base.x, base.y};
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        shrink[h] = exp2_approximate(softmax.base[h] - to[h]);
        softmax.base[h] = to[h];
        softmax.sum[h] *= shrink[h];
      }
    }

    static CERMET_DEVICE void pack_weights(const float (&scores)[keys / 2], Weights& weights) {
#pragma unroll
      for (int i = 0; i < 4 * steps; ++i) weights[i / 4][i % 4] = pack(scores[2 * i], scores[2 * i + 1], T{});
    }

    // A warp and that of the other warpgroup with the same rows have the same elements in the same lanes.

    static constexpr int pair = 64;  ///< threads of the two
    CERMET_DEVICE uint4* place(int region, int step) const {
      return reinterpret_cast<uint4*>(shared.weights_of(region)) + 128 * step + thread;
    }

    /// To the other warpgroup: the weights of this one's tile, and what they are relative to. `moves`: whether that is
    /// new for some row of the warp.
    CERMET_DEVICE void send(const Weights& weights, bool moves) const {
      // No warp's products read the keys any more, whose place weights may take.
      const bool some_move = team.any_part(12 + W, 128, moves);
#pragma unroll
      for (int step = 0; step < steps; ++step)
        *place(W, step) = uint4{weights[step][0], weights[step][1], weights[step][2], weights[step][3]};
      shared.bases[128 * W + thread] = float2{softmax.base[0], softmax.base[1]};
      if (lane_index() == 0) shared.moved[4 * W + warp] = some_move;
      team.arrive_part(4 * W + warp, pair);
    }

    /// The other one's. Multiplies results, if need be, so that they are relative to the same.
    CERMET_DEVICE void receive(Weights& weights, Output& output) {
      constexpr int other = 1 - W;
      team.sync_part(4 * other + warp, pair);
#pragma unroll
      for (int step = 0; step < steps; ++step) {
        const uint4 four = *place(other, step);
        weights[step][0] = four.x, weights[step][1] = four.y, weights[step][2] = four.z, weights[step][3] = four.w;
      }
      if (!shared.moved[4 * other + warp]) return;  // all warps alike
      ptx::wgmma_wait<0>();                         // of scores: ptxas lets nothing change results before
      float shrink[2];
      move(shared.bases[128 * other + thread], shrink);
      scale(output, shrink);
    }

    /// After products with them have begun: a copy may take their place.
    CERMET_DEVICE void free_received() const {
      if constexpr (!C.weights_in_keys()) return;
      ptx::fence_async_shared();
      shared.free(1 - W, value_pieces);
    }

    /// Sums of both warpgroups' weights, which are relative to the same by now.
    CERMET_DEVICE void add_sums() {
      shared.sums[128 * W + thread] = float2{softmax.sum[0], softmax.sum[1]};
      team.sync_part(8 + warp, pair);
      const float2 others = shared.sums[128 * (1 - W) + thread];
      softmax.sum[0] += others.x, softmax.sum[1] += others.y;
      team.sync_part(8 + warp, pair);  // the next item's may take their place
    }

    // ---- Items

    static constexpr auto nothing = [](int, int) {};

    /// Tiles of region 0 and, of each pair, the products with those of region 1.
    CERMET_DEVICE void attend_even(const PrefillNote& note, float (&scores)[keys / 2], Weights& weights,
                                   Output& output) {
      multiply_keys<0, key_steps>(scores, nothing);
      ptx::wgmma_wait<0>();
      end_keys<0>(scores);
      int first = note.first;
#pragma unroll 1
      for (;;) {
        const bool last = first + keys >= note.last;
        first += 2 * keys;
        if (first >= note.last) ptx::mbarrier_arrive_warp(shared.query_empty);
        float shrink[2];
        const bool moves = weigh(note, first - 2 * keys, scores, shrink);
        if (moves) scale(output, shrink);
        pack_weights(scores, weights);
        send(weights, moves);
        multiply_values<0>(weights, output);
        finish_values<0>(weights, output, last);
        ++done[0];
        if (last) return;
        if (first >= note.last) break;
        multiply_keys<0, early>(scores, nothing);
        receive(weights, output);
        multiply_values<1>(weights, output);
        free_received();
        finish_keys(scores, weights, output);
        ++done[1];
      }
      receive(weights, output);
      multiply_values<1>(weights, output);
      free_received();
      finish_values<1>(weights, output, true);
      ++done[1];
    }

    /// Tiles of region 1 and, of each pair, the products with those of region 0; those of a last one without a pair.
    CERMET_DEVICE void attend_odd(const PrefillNote& note, float (&scores)[keys / 2], Weights& weights,
                                  Output& output) {
      const bool single = note.tiles % 2 != 0;
      if (note.tiles == 1) ptx::mbarrier_arrive_warp(shared.query_empty);
#pragma unroll 1
      for (int first = note.first + keys; first < note.last; first += 2 * keys) {
        multiply_keys<0, early>(scores, nothing);
        receive(weights, output);
        multiply_values<0>(weights, output);
        free_received();
        if constexpr (early < key_steps) {
          finish_keys(scores, weights, output);
        } else {
          ptx::wgmma_wait<value_groups>();
          end_keys<0>(scores);
        }
        const bool last = first + 2 * keys >= note.last;
        if (last) ptx::mbarrier_arrive_warp(shared.query_empty);
        float shrink[2];
        const bool moves = weigh(note, first, scores, shrink);
        Weights own;
        pack_weights(scores, own);
        send(own, moves);
        if constexpr (early == key_steps) finish_values<0>(weights, output);
        if (moves) scale(output, shrink);
        multiply_values<1>(own, output);
        finish_values<1>(own, output, last && !single);
        ++done[0], ++done[1];
      }
      if (!single) return;
      receive(weights, output);
      multiply_values<0>(weights, output);
      free_received();
      finish_values<0>(weights, output, true);
      ++done[0];
    }

    CERMET_DEVICE void run() {
#pragma unroll 1
      for (uint32_t item = 0;; ++item) {
        const ptx::RingSlot<C.notes> note_slot(item);
        ptx::mbarrier_wait(shared.note_full + note_slot.stage, note_slot.phase);
        const PrefillNote& note = shared.notes[note_slot.stage];
        if (note.tiles < 0) return;
        ptx::mbarrier_wait(shared.query_full, item & 1);
        softmax.start(params.a, note);
        float scores[keys / 2];
        Weights weights;
        Output output;
#pragma unroll
        for (int i = 0; i < C.value_columns() / 2; ++i) output[i / (32 * wide)][i % (32 * wide)] = 0.0f;
        if constexpr (W == 0) attend_even(note, scores, weights, output);
        else attend_odd(note, scores, weights, output);
        add_sums();
        // Results leave through the place of the last tile's values that this warpgroup had, and had alone.
        const int region = 1 - note.tiles % 2;
        team.sync_part(12 + W, 128);
        PrefillOutput<C, first_column, columns, value_groups * wide>{params.a, note, softmax}.store(
            reinterpret_cast<const float(&)[C.value_columns() / 2]>(output),
            shared.at(region, W * half) + softmax.warp_row() * 128, [&] {
#pragma unroll
              for (int group = 0; group < value_groups; ++group) free_values(region, group);
            });
        ptx::mbarrier_arrive_warp(shared.note_empty + note_slot.stage);
      }
    }
  };

  // ---- The task (entry.cuh)

  template <class Team>
  static CERMET_DEVICE void run_all(const Params& params, const BlockItems& items, Team team, char* smem) {
    static_assert(Team::size == C.threads && Team::cluster == C.cluster);
    const Shared shared(smem);
    const int warpgroup = __shfl_sync(0xffffffffu, static_cast<int>(team.rank()) / 128, 0);
    const uint32_t rank = team.cluster_rank();
    if (team.rank() == 0) shared.set_up(params);
    if constexpr (C.cluster > 1) ptx::cluster_barrier();
    else team.sync();
    wait_for_earlier_launches();
    if (warpgroup < C.warpgroups) {
      ptx::take_registers<C.consumer_registers>();
      if (warpgroup == 0) Consumer<0, Team>(params, shared, team).run();
      else Consumer<1, Team>(params, shared, team).run();
    } else {
      ptx::give_registers_back<C.producer_registers>();
      if (team.warp() % 4 == 0) WideCopies<C>::produce(params, shared, rank);
      else if (team.warp() % 4 == 1)
        PrefillItems<C>::schedule(params.a, params.tiles,
                                  {items.first / C.cluster, items.end / C.cluster, items.step / C.cluster},
                                  static_cast<int>(rank), shared.notes, shared.note_full, shared.note_empty);
    }
    if constexpr (C.cluster > 1) ptx::cluster_barrier();  // the other block may still free pieces here
  }
};

}  // namespace cermet::attention
#endif
