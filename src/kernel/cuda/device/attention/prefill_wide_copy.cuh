// What lies where in shared memory in attention with wide heads, and the warp that copies tiles there.
#pragma once

#include "kernel/cuda/device/attention/prefill_items.cuh"
#include "kernel/cuda/device/attention/prefill_wide.hpp"
#include "kernel/cuda/device/ptx/barrier.cuh"
#include "kernel/cuda/device/ptx/cluster.cuh"
#include "kernel/cuda/device/ptx/mbarrier.cuh"
#include "kernel/cuda/device/ptx/tma.cuh"

#if CERMET_ARCH >= 900
namespace cermet::attention {

template <WidePrefillConfig C>
struct WideShared {
  static constexpr int key_pieces = C.key_pieces(), value_pieces = C.value_pieces(), slots = C.region_pieces();
  static constexpr int half = C.half_pieces();
  /// Pieces that have both keys and values of a tile, one after the other.
  static constexpr int reused = C.values_in_keys ? 0 : min_of(key_pieces, value_pieces);
  static_assert(value_pieces >= 2 && !(C.values_in_keys && key_pieces < value_pieces));

  /// Pieces arrive, and are freed, in steps: those of values, and of keys with the same columns, by two where that
  /// divides both halves. First piece of each step of values, which take turns between the halves; and of keys, those
  /// that only keys have before the others.
  static constexpr int wide = value_pieces % 4 == 0 && key_pieces >= value_pieces ? 2 : 1;
  static constexpr int only_keys = max_of(0, key_pieces - value_pieces);
  static constexpr int value_steps = value_pieces / wide,
                       key_steps = key_pieces < value_pieces ? key_pieces : only_keys + value_steps;
  static constexpr CERMET_DEVICE int value_step(int i) { return i / 2 * wide + i % 2 * half; }
  static constexpr CERMET_DEVICE int key_step(int i) {
    if (key_pieces < value_pieces) return i;
    return i < only_keys ? value_pieces + i : value_step(i - only_keys);
  }
  static constexpr CERMET_DEVICE int key_step_pieces(int i) { return i < only_keys ? 1 : wide; }

  char *queries, *regions, *weights;
  float2 *bases, *sums;  // (warpgroup, thread)
  int* moved;            // (warpgroup, warp): whether bases have
  PrefillNote* notes;
  uint64_t *query_full, *query_empty;
  uint64_t *full, *empty;            // (region, piece)
  uint64_t *note_full, *note_empty;  // (notes)
  uint64_t* tail;                    // (region)

  CERMET_DEVICE explicit WideShared(char* smem)
      : queries(smem),
        regions(queries + key_pieces * C.piece_bytes),
        weights(regions + 2 * slots * C.piece_bytes),
        bases(reinterpret_cast<float2*>(weights + C.weight_bytes())),
        sums(bases + 2 * 128),
        moved(reinterpret_cast<int*>(sums + 2 * 128)),
        notes(reinterpret_cast<PrefillNote*>(reinterpret_cast<char*>(moved) + 64)) {
    query_full = reinterpret_cast<uint64_t*>(notes + C.notes), query_empty = query_full + 1;
    full = query_empty + 1, empty = full + 2 * slots;
    note_full = empty + 2 * slots, note_empty = note_full + C.notes;
    tail = note_empty + C.notes;
  }
  CERMET_DEVICE char* at(int region, int piece) const { return regions + (region * slots + piece) * C.piece_bytes; }
  CERMET_DEVICE uint64_t* full_of(int region, int piece) const { return full + region * slots + piece; }
  CERMET_DEVICE uint64_t* empty_of(int region, int piece) const { return empty + region * slots + piece; }
  /// Weights of the tile in a region: where its first piece was that has no values.
  CERMET_DEVICE char* weights_of(int region) const {
    return C.weights_in_keys() ? at(region, value_pieces) : weights + region * C.piece_bytes;
  }

  /// By a warp that reads a piece no more: to whoever copies to it.
  CERMET_DEVICE void free(int region, int piece) const {
    uint64_t* const barrier = empty + region * slots + piece;
    if constexpr (C.cluster == 1) return ptx::mbarrier_arrive_warp(barrier);
    __syncwarp();
    if (lane_index() < C.cluster) ptx::mbarrier_arrive_cluster(ptx::cluster_address(barrier, lane_index()));
  }

  /// Parity of the use of a piece by the keys, or the values, of a region's tile number n.
  static CERMET_DEVICE uint32_t key_phase(int piece, uint32_t n) { return piece < reused ? 0 : n & 1; }
  static CERMET_DEVICE uint32_t value_phase(int piece, uint32_t n) { return piece < reused ? 1 : n & 1; }

  CERMET_DEVICE void set_up(const TmaPrefillParams& p) const {
    constexpr int warps = 4;  // of a warpgroup: a piece is freed by one
    ptx::mbarrier_init(query_full, 1);
    ptx::mbarrier_init(query_empty, C.warpgroups * warps);
    for (int i = 0; i < 2 * slots; ++i) {
      ptx::mbarrier_init(full + i, 1);
      ptx::mbarrier_init(empty + i, C.cluster * warps);
    }
    for (int i = 0; i < C.notes; ++i) {
      ptx::mbarrier_init(note_full + i, 1);
      ptx::mbarrier_init(note_empty + i, C.warpgroups * warps + 1);
    }
    for (int i = 0; i < 2; ++i) ptx::mbarrier_init(tail + i, C.values_in_keys ? key_steps : value_steps);
    ptx::fence_mbarrier_init();
    ptx::prefetch_tensor_map(&p.q);
    ptx::prefetch_tensor_map(&p.k);
    if constexpr (!C.values_in_keys) ptx::prefetch_tensor_map(&p.v);
  }
};

/// A warp, of which each lane has a box of a tile.
template <WidePrefillConfig C>
struct WideCopies {
  using Items = PrefillItems<C>;
  using Shared = WideShared<C>;
  static constexpr int keys = C.keys, slots = Shared::slots, key_pieces = Shared::key_pieces,
                       value_pieces = Shared::value_pieces;
  static constexpr bool paged = C.block != 0;

  /// Rows of all pieces of values that are none of the sequence's.
  static CERMET_DEVICE void clear(char* region, const typename Items::Unseen& rows_of) {
#pragma unroll 1
    for (int i = not_hoisted(static_cast<int>(lane_index())); i < value_pieces * keys * 8; i += 32) {
      const int row = i / 8 % keys;
      if (row < rows_of.before || row >= rows_of.from) reinterpret_cast<uint4*>(region)[i] = uint4{0, 0, 0, 0};
    }
    ptx::fence_async_shared();
  }

  /// The keys, or the values, of a region's tile that begins at `first`.
  template <bool Values>
  static CERMET_DEVICE void copy(const TmaPrefillParams& params, const Shared& shared, PrefillNote& note, int region,
                                 int first, int page, uint32_t rank, uint32_t& phases) {
    constexpr int count = Values ? Shared::value_steps : Shared::key_steps;
    const int lane = not_hoisted(static_cast<int>(lane_index())), key = first + lane * Items::box_rows;
    const int row = paged ? key % (paged ? C.block : 1) : note.key_begin + key;
    const typename Items::Unseen rows_of = Items::unseen(params.a, note, first);
    const bool clears = (Values || C.values_in_keys) && (rows_of.before > 0 || rows_of.from < keys);
    constexpr int own_boxes = Items::boxes / C.cluster;
    const bool has = Items::has(params.a, note, first, page, &note.broken);
    const bool copies = has && lane / own_boxes == static_cast<int>(rank);
    const int boxes = __popc(__ballot_sync(0xffffffffu, has));
#pragma unroll 1
    for (int i = 0; i < count; ++i) {
      const int first_piece = Values ? Shared::value_step(i) : Shared::key_step(i),
                pieces = Values ? Shared::wide : Shared::key_step_pieces(i);
      uint64_t* const full = clears ? shared.tail + region : shared.full_of(region, first_piece);
      ptx::mbarrier_wait(shared.empty_of(region, first_piece),
                         (Values ? Shared::value_phase(first_piece, phases >> region)
                                 : Shared::key_phase(first_piece, phases >> region)) ^
                             1);
      if (lane == 0) ptx::mbarrier_arrive_expect(full, static_cast<uint32_t>(boxes * pieces * (Items::box_rows * 128)));
      __syncwarp();
      if (!copies) continue;
#pragma unroll
      for (int piece = first_piece; piece < first_piece + pieces; ++piece) {
        char* const to = shared.at(region, piece) + lane * (Items::box_rows * 128);
        const TensorMapBytes* const map = Values ? &params.v : &params.k;
        if constexpr (C.cluster == 1) ptx::tma_load_4d(to, map, 64 * piece, row, note.kv_head, page, full);
        else ptx::tma_load_4d_multicast(to, map, 64 * piece, row, note.kv_head, page, full, (1 << C.cluster) - 1);
      }
    }
    if (!clears) return;
    ptx::mbarrier_wait(shared.tail + region, phases >> (2 + region) & 1);
    phases ^= 4u << region;
    clear(shared.at(region, 0), rows_of);
    __syncwarp();
    if (lane < count)
      ptx::mbarrier_arrive(shared.full_of(region, Values ? Shared::value_step(lane) : Shared::key_step(lane)));
  }

  static CERMET_DEVICE void produce(const TmaPrefillParams& params, const Shared& shared, uint32_t rank) {
    const Params& p = params.a;
    // Of each region's number of tiles the parity, of those that had rows to clear, too; then the number of items.
    uint32_t phases = 0;
#pragma unroll 1
    for (;; phases += 1u << 4) {
      const uint32_t item = phases >> 4;
      const ptx::RingSlot<C.notes> note_slot(item);
      ptx::mbarrier_wait(shared.note_full + note_slot.stage, note_slot.phase);
      PrefillNote& note = shared.notes[note_slot.stage];
      if (note.tiles < 0) return;
      int first = note.first, page[2] = {Items::page_of(p, note, first), Items::page_of(p, note, first + keys)};
      ptx::mbarrier_wait(shared.query_empty, (item & 1) ^ 1);
      if (ptx::elect_one()) {
        ptx::mbarrier_arrive_expect(shared.query_full, key_pieces * C.tokens() * C.heads() * 128);
#pragma unroll 1
        for (int piece = 0; piece < key_pieces; ++piece)
          ptx::tma_load_4d(shared.queries + piece * C.piece_bytes, &params.q, 64 * piece, note.head, note.token, 0,
                           shared.query_full);
      }
      __syncwarp();
#pragma unroll 1
      for (int tile = 0; tile < note.tiles; tile += 2, first += 2 * keys) {
        const int next[2] = {Items::page_of(p, note, first + 2 * keys), Items::page_of(p, note, first + 3 * keys)};
        const int regions = min_of(2, note.tiles - tile);
#pragma unroll 1
        for (int region = 0; region < regions; ++region)
          copy<false>(params, shared, note, region, first + region * keys, region ? page[1] : page[0], rank, phases);
#pragma unroll 1
        for (int region = 0; !C.values_in_keys && region < regions; ++region)
          copy<true>(params, shared, note, region, first + region * keys, region ? page[1] : page[0], rank, phases);
        phases ^= regions == 2 ? 3 : 1;
        page[0] = next[0], page[1] = next[1];
      }
      ptx::mbarrier_arrive_warp(shared.note_empty + (phases >> 4) % C.notes);
    }
  }
};

}  // namespace cermet::attention
#endif
