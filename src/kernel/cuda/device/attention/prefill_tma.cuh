// Attention of many queries on Hopper (sm_90a), 16 or 8 bits: o[r] = sum over keys of softmax(scale * q[r] . k)[j] *
// v[j], rows r = query x head of the group that shares a key-value head, sequences side by side, keys in a list or in
// pages.
//
//   Tiles      An item is a key-value head and TOK = ROWS / group tokens of a sequence, against tiles of KEYS keys:
//                head sizes up to   64   64, long   80   96   112  128, few rows  128, long  192  256
//                consumers x 64     3    3          3    3    3    2              3          2    2    = ROWS
//                KEYS               96   112        112  96   80   128            80         96   64
//                stages             4    4          2    2    2    2              3          2    2
//              With weights in two parts: 2 consumers and 128, 128, 96 or 48 keys. In 8 bits, with values in columns:
//              2 consumers, the first 2 tiles ahead; 5 stages of 128 keys, beyond head sizes of 128 and 192 4 of 96
//              and 64.
//   Threads    warpgroups 0 .. consumers - 1    64 rows each; with 3 and more they take turns in issuing products, so
//                                               that one's exponentials run beside the others' products
//              the last warpgroup               warp 0 copies queries and keys, warp 1 finds items, warp 2 copies
//                                               values
//   Shared     0                    queries     [query_buffers] (pieces of 128 bytes, ROWS, 128 bytes); results leave
//   memory                                      through the buffer of their own rows
//              + query_bytes ..     keys        [stages] (pieces, KEYS, 128 bytes)
//              + key_bytes ..       values      [stages] (pieces, KEYS, 128 bytes)
//              + value_bytes ..     scales      [stages], those of tokens of 8 bits
//              + scale_bytes ..     notes       [4] of 64 bytes: items
//              + 256 ..             barriers    full and empty of queries, keys, values and notes; one of tails
//              All tiles have the 128-byte swizzle. Head size 128, long: 2 x 48 + 3 x 20 + 3 x 20 KiB.
//   Phases     schedule()  warp 1: items of the block, longest first (tile_order.cuh), one ahead of the consumers
//              produce_keys(), produce_values()   tiles by TMA. A page of 16 tokens is two copies of 2 KiB: one warp
//                          for both is not fast enough. Rows of values that are not the sequence's become zero, for
//                          they may hold NaN
//              consume()   scores of tile 0 become weights (prefill_tma_scores.cuh); then for each further tile j
//                            products   S = Q K[j]^T, O += P V[j - 1], issued together
//                            weights    wait for S; P' = weights of S, while O is under way
//                            rescale    wait for O; O *= shrink where a base moved; P = P' in 16 bits
//                          then O += P V[last] and, where the configuration overlaps items, S of the next one;
//                          results (prefill_tma_output.cuh) leave while that is under way
//              Nothing is under way when a tile's turn of the loop ends. ptxas moves the wait for O up, over the
//              exponentials, unless a branch depends on them: PrefillScores::add has one.
//   Bytes      of a tile of keys and ROWS rows: 4 ROWS KEYS D operations, 4 KEYS D bytes from the L2. D = 128, 3
//              consumers, 80 keys: 1,920 cycles of the tensor cores, 41 KB, 21 bytes a cycle.
#pragma once

#include "kernel/cuda/device/attention/prefill_tma_columns.cuh"
#include "kernel/cuda/device/attention/prefill_tma_output.cuh"
#include "kernel/cuda/device/attention/prefill_tma_products.cuh"
#include "kernel/cuda/device/overlap.cuh"
#include "kernel/cuda/device/ptx/barrier.cuh"
#include "kernel/cuda/device/ptx/mbarrier.cuh"
#include "kernel/cuda/device/ptx/tma.cuh"
#include "kernel/cuda/device/ptx/wgmma.cuh"

#if CERMET_ARCH >= 900
namespace cermet::attention {

template <TmaPrefillConfig C>
struct TmaPrefillTask : PrefillProducts<C> {
  using Params = TmaPrefillParams;
  using Products = PrefillProducts<C>;
  using Products::multiply_keys, Products::multiply_values, Products::pack_weights, Products::touch;
  using typename Products::Weights;
  using Items = PrefillItems<C>;
  static constexpr int keys = C.keys, rows = C.rows(), columns = C.value_columns();
  static constexpr bool paged = C.block != 0, takes_turns = C.turns;
  static constexpr int box_rows = C.box_rows();
  static_assert(keys % (C.columns ? 32 : 16) == 0);

  // ---- Shared memory

  struct Shared {
    char *queries, *keys, *values, *scales, *notes;
    uint64_t *query_full, *query_empty;                         // (query_buffers)
    uint64_t *key_full, *key_empty, *value_full, *value_empty;  // (stages)
    uint64_t *note_full, *note_empty;                           // (notes)
    uint64_t* tail;

    CERMET_DEVICE explicit Shared(char* smem)
        : queries(smem),
          keys(queries + C.query_buffers * C.query_bytes()),
          values(keys + C.stages * C.key_bytes()),
          scales(values + C.stages * C.value_bytes()),
          notes(scales + C.stages * C.scale_bytes()) {
      query_full = reinterpret_cast<uint64_t*>(notes + C.notes * C.note_bytes);
      query_empty = query_full + C.query_buffers;
      key_full = query_empty + C.query_buffers, key_empty = key_full + C.stages;
      value_full = key_empty + C.stages, value_empty = value_full + C.stages;
      note_full = value_empty + C.stages, note_empty = note_full + C.notes;
      tail = note_empty + C.notes;
    }
    CERMET_DEVICE PrefillNote& note(int slot) const {
      return *reinterpret_cast<PrefillNote*>(notes + slot * C.note_bytes);
    }
    CERMET_DEVICE char* key(int stage) const { return keys + stage * C.key_bytes(); }
    CERMET_DEVICE char* value(int stage) const { return values + stage * C.value_bytes(); }
    CERMET_DEVICE float* scale(int stage) const { return reinterpret_cast<float*>(scales + stage * C.scale_bytes()); }
  };
  using Slot = ptx::RingSlot<C.stages>;
  using QuerySlot = ptx::RingSlot<C.query_buffers>;
  using NoteSlot = ptx::RingSlot<C.notes>;

  static CERMET_DEVICE void set_up(const Params& p, const Shared& shared) {
    constexpr int consumer_warps = 4 * C.warpgroups;
    for (int i = 0; i < C.query_buffers; ++i) {
      ptx::mbarrier_init(shared.query_full + i, 1);
      ptx::mbarrier_init(shared.query_empty + i, consumer_warps);
    }
    for (int i = 0; i < C.stages; ++i) {
      ptx::mbarrier_init(shared.key_full + i, 1);
      ptx::mbarrier_init(shared.key_empty + i, consumer_warps);
      ptx::mbarrier_init(shared.value_full + i, 1);
      ptx::mbarrier_init(shared.value_empty + i, consumer_warps);
    }
    for (int i = 0; i < C.notes; ++i) {
      ptx::mbarrier_init(shared.note_full + i, 1);
      ptx::mbarrier_init(shared.note_empty + i, consumer_warps + 2);
    }
    ptx::mbarrier_init(shared.tail, 1);
    ptx::fence_mbarrier_init();
    ptx::prefetch_tensor_map(&p.q);
    ptx::prefetch_tensor_map(&p.k);
    if constexpr (!C.columns) ptx::prefetch_tensor_map(&p.v);
  }

  // ---- Copies: a warp for keys and one for values, of which each lane has a box of a tile

  template <int Pieces>
  static CERMET_DEVICE void copy(const TensorMapBytes* map, const PrefillNote& note, int first, int page, bool has,
                                 char* to, uint64_t* full) {
    const int lane = static_cast<int>(lane_index()), key = first + lane * box_rows;
    const uint32_t copied = __ballot_sync(0xffffffffu, has);
    if (lane == 0) ptx::mbarrier_arrive_expect(full, static_cast<uint32_t>(__popc(copied) * (Pieces * box_rows * 128)));
    __syncwarp();
    if (!has) return;
    const int row = paged ? key % (paged ? C.block : 1) : note.key_begin + key;
#pragma unroll
    for (int piece = 0; piece < Pieces; ++piece)
      ptx::tma_load_4d(to + piece * (keys * 128) + lane * (box_rows * 128), map, C.piece_elements() * piece, row,
                       note.kv_head, page, full);
  }

  static CERMET_DEVICE void clear(char* tile, const typename Items::Unseen& rows_of) {
    if constexpr (C.columns) {
      PrefillColumns<C>::clear(tile, rows_of.before, rows_of.from);
    } else {
      for (int i = static_cast<int>(lane_index()); i < C.pieces(C.value_size) * keys * 8; i += 32) {
        const int row = i / 8 % keys;
        if (row < rows_of.before || row >= rows_of.from) reinterpret_cast<uint4*>(tile)[i] = uint4{0, 0, 0, 0};
      }
    }
    ptx::fence_async_shared();
  }

  static CERMET_DEVICE void produce_queries(const Params& params, const Shared& shared, const PrefillNote& note,
                                            uint32_t item) {
    constexpr int pieces = C.pieces(C.head_size);
    const QuerySlot slot(item);
    ptx::mbarrier_wait(shared.query_empty + slot.stage, slot.phase ^ 1);
    if (ptx::elect_one()) {
      uint64_t* const full = shared.query_full + slot.stage;
      ptx::mbarrier_arrive_expect(full, pieces * C.tokens() * C.group * 128);
#pragma unroll
      for (int piece = 0; piece < pieces; ++piece)
        ptx::tma_load_4d(shared.queries + slot.stage * C.query_bytes() + piece * (rows * 128), &params.q,
                         C.piece_elements() * piece, note.head, note.token, 0, full);
    }
    __syncwarp();
  }

  /// Queries and keys of all items.
  static CERMET_DEVICE void produce_keys(const Params& params, const Shared& shared) {
    const attention::Params& p = params.a;
    uint32_t all_tiles = 0;  // of the items before
#pragma unroll 1
    for (uint32_t item = 0;; ++item) {
      const NoteSlot note_slot(item);
      ptx::mbarrier_wait(shared.note_full + note_slot.stage, note_slot.phase);
      const PrefillNote note = shared.note(note_slot.stage);
      if (note.tiles < 0) return;
      int first = note.first, page = Items::page_of(p, note, first);
      produce_queries(params, shared, note, item);
      [[maybe_unused]] typename PrefillColumns<C>::Scales scales;
      [[maybe_unused]] float relative_to = 0.0f;
      if constexpr (C.token_scales) scales.load(p, note, first, Items::has(p, note, first, page) ? page : -1);
#pragma unroll 1
      for (int tile = 0; tile < note.tiles; ++tile, first += keys) {
        const int next_page = Items::page_of(p, note, first + keys);
        const Slot slot(all_tiles + tile);
        ptx::mbarrier_wait(shared.key_empty + slot.stage, slot.phase ^ 1);
        if constexpr (C.token_scales)
          scales.store(shared.scale(slot.stage), C.plain ? params.scale_log2 : 1.0f, relative_to);
        copy<C.pieces(C.head_size)>(&params.k, note, first, page, Items::has(p, note, first, page),
                                    shared.key(slot.stage), shared.key_full + slot.stage);
        if constexpr (C.token_scales)
          scales.load(p, note, first + keys, Items::has(p, note, first + keys, next_page) ? next_page : -1);
        page = next_page;
      }
      all_tiles += note.tiles;
      ptx::mbarrier_arrive_warp(shared.note_empty + note_slot.stage);
    }
  }

  static CERMET_DEVICE void produce_values(const Params& params, const Shared& shared) {
    const attention::Params& p = params.a;
    uint32_t all_tiles = 0, tails = 0;
#pragma unroll 1
    for (uint32_t item = 0;; ++item) {
      const NoteSlot note_slot(item);
      ptx::mbarrier_wait(shared.note_full + note_slot.stage, note_slot.phase);
      const PrefillNote note = shared.note(note_slot.stage);
      if (note.tiles < 0) return;
      int first = note.first, page = Items::page_of(p, note, first);
#pragma unroll 1
      for (int tile = 0; tile < note.tiles; ++tile, first += keys) {
        const int next_page = Items::page_of(p, note, first + keys);
        const Slot slot(all_tiles + tile);
        ptx::mbarrier_wait(shared.value_empty + slot.stage, slot.phase ^ 1);
        char* const to = shared.value(slot.stage);
        uint64_t* const full = shared.value_full + slot.stage;
        const typename Items::Unseen rows_of = Items::unseen(p, note, first);
        const bool clears = rows_of.before > 0 || rows_of.from < keys;
        const bool has = Items::has(p, note, first, page, &shared.note(note_slot.stage).broken);
        uint64_t* const arrived = clears ? shared.tail : full;
        if constexpr (C.columns) PrefillColumns<C>::copy(p, note, first, page, has, to, arrived);
        else copy<C.pieces(C.value_size)>(&params.v, note, first, page, has, to, arrived);
        if (clears) {
          ptx::mbarrier_wait(shared.tail, tails++ & 1);
          clear(to, rows_of);
          ptx::mbarrier_arrive_warp(full);
        }
        page = next_page;
      }
      all_tiles += note.tiles;
      ptx::mbarrier_arrive_warp(shared.note_empty + note_slot.stage);
    }
  }

  // ---- Consumers

  /// Whether a warpgroup's rows may end tiles of keys before the item's: then it only takes part in turns.
  static constexpr bool ends_early = 64 * (C.warpgroups - 1) / C.group >= keys;
  static CERMET_DEVICE int last_key_of(const attention::Params& p, const PrefillNote& note, int warpgroup) {
    if constexpr (!ends_early) return note.last;
    const int token = PrefillScores<C>::token_of(64 * warpgroup + 63);
    return max_of(note.first + 1, min_of(note.last, visible_keys(p, note.position + token, note.keys).last));
  }

  /// Starts an item's first scores. Without an item it starts nothing and returns false, unless Always: products that
  /// others are under way beside may not depend on a branch, and what these give is not used.
  template <bool Always>
  static CERMET_DEVICE bool begin_item(const Shared& shared, int warpgroup, uint32_t item, uint32_t tile,
                                       float (&scores)[keys / 2]) {
    const NoteSlot note_slot(item);
    const QuerySlot query_slot(item);
    const Slot slot(tile);
    ptx::mbarrier_wait(shared.note_full + note_slot.stage, note_slot.phase);
    const bool there_is = shared.note(note_slot.stage).tiles > 0;
    if (!Always && !there_is) return false;
    if (there_is) {
      ptx::mbarrier_wait(shared.query_full + query_slot.stage, query_slot.phase);
      ptx::mbarrier_wait(shared.key_full + slot.stage, slot.phase);
    }
    multiply_keys(shared.queries + query_slot.stage * C.query_bytes() + 64 * warpgroup * 128, shared.key(slot.stage),
                  scores);
    return there_is;
  }

  static constexpr bool overlaps = C.overlaps && C.query_buffers > 1 && !ends_early;

  template <class Team>
  static CERMET_DEVICE void consume(const Params& params, const Shared& shared, Team team, int warpgroup) {
    constexpr int turn = 256;  // threads: those whose turn it is, and those before them
    const int next_turn = warpgroup == C.warpgroups - 1 ? 0 : warpgroup + 1;
    if constexpr (takes_turns)
      if (next_turn == 0) team.arrive_part(0, turn);
    uint32_t tile = 0;  // of all items
    float scores[keys / 2], output[columns / 2];
    Weights weights;
    PrefillScores<C> softmax;
    softmax.first_row = 64 * warpgroup + 16 * static_cast<int>(team.warp() % 4) + static_cast<int>(lane_index()) / 4;
    if (!begin_item<false>(shared, warpgroup, 0, tile, scores)) return;
    ptx::wgmma_wait<0>();
    touch(scores);
#pragma unroll 1
    for (uint32_t item = 0;; ++item) {
      const NoteSlot note_slot(item);
      const QuerySlot query_slot(item);
      const PrefillNote& note = shared.note(note_slot.stage);
      if (note.tiles < 0) return;
      char* const queries = shared.queries + query_slot.stage * C.query_bytes();
      softmax.start(params.a, note);
#pragma unroll
      for (int d = 0; d < columns / 2; ++d) output[d] = 0.0f;
      if constexpr (!C.token_scales) ptx::mbarrier_arrive_warp(shared.key_empty + Slot(tile).stage);
      softmax.begin(params, note, shared.scale(Slot(tile).stage), scores);
      if constexpr (C.token_scales) ptx::mbarrier_arrive_warp(shared.key_empty + Slot(tile).stage);
      pack_weights(scores, weights);
      const int last_key = last_key_of(params.a, note, warpgroup);
      int first = note.first + keys;
#pragma unroll 1
      for (; first < (ends_early ? last_key : note.last); first += keys) {
        const Slot values(tile), slot(tile + 1);
        ++tile;
        ptx::mbarrier_wait(shared.key_full + slot.stage, slot.phase);
        if constexpr (takes_turns) team.sync_part(warpgroup, turn);
        multiply_keys(queries + 64 * warpgroup * 128, shared.key(slot.stage), scores);
        ptx::mbarrier_wait(shared.value_full + values.stage, values.phase);
        multiply_values(weights, shared.value(values.stage), output);
        if constexpr (takes_turns) team.arrive_part(next_turn, turn);
        ptx::wgmma_wait<1>();
        touch(scores);
        float shrink[2] = {1.0f, 1.0f};
        const bool moves =
            softmax.add(params, note, first, queries, shared.key(slot.stage), shared.scale(slot.stage), scores, shrink);
        ptx::mbarrier_arrive_warp(shared.key_empty + slot.stage);
        ptx::wgmma_wait<0>();
        touch(output);
        touch(weights);
        ptx::mbarrier_arrive_warp(shared.value_empty + values.stage);
        if (moves) {
#pragma unroll
          for (int d = 0; d < columns / 2; ++d) output[d] *= shrink[d / 2 % 2];
        }
        pack_weights(scores, weights);
      }
      const Slot last(tile++);
      ptx::mbarrier_wait(shared.value_full + last.stage, last.phase);
      multiply_values(weights, shared.value(last.stage), output);
      if constexpr (overlaps) begin_item<true>(shared, warpgroup, item + 1, tile, scores);
      ptx::wgmma_wait<overlaps ? 1 : 0>();
      touch(output);
      touch(weights);
      ptx::mbarrier_arrive_warp(shared.value_empty + last.stage);
      if constexpr (ends_early) {
#pragma unroll 1
        for (; first < note.last; first += keys) {
          const Slot slot(tile++);
          ptx::mbarrier_wait(shared.key_full + slot.stage, slot.phase);
          if constexpr (takes_turns) {
            team.sync_part(warpgroup, turn);
            team.arrive_part(next_turn, turn);
          }
          ptx::mbarrier_arrive_warp(shared.key_empty + slot.stage);
          ptx::mbarrier_wait(shared.value_full + slot.stage, slot.phase);
          ptx::mbarrier_arrive_warp(shared.value_empty + slot.stage);
        }
      }
      PrefillOutput<C>{params.a, note, softmax}.store(output, queries + softmax.warp_row() * 128, [&] {
        ptx::mbarrier_arrive_warp(shared.query_empty + query_slot.stage);
      });
      ptx::mbarrier_arrive_warp(shared.note_empty + note_slot.stage);
      if constexpr (!overlaps)
        if (!begin_item<false>(shared, warpgroup, item + 1, tile, scores)) return;
      ptx::wgmma_wait<0>();
      touch(scores);
    }
  }

  // ---- The task (entry.cuh)

  template <class Team>
  static CERMET_DEVICE void run_all(const Params& params, const BlockItems& items, Team team, char* smem) {
    static_assert(Team::size == C.threads());
    const Shared shared(smem);
    const int warpgroup = __shfl_sync(0xffffffffu, static_cast<int>(team.rank()) / 128, 0);
    if (team.rank() == 0) set_up(params, shared);
    team.sync();
    wait_for_earlier_launches();
    if (warpgroup < C.warpgroups) {
      ptx::take_registers<C.consumer_registers()>();
      consume(params, shared, team, warpgroup);
    } else {
      ptx::give_registers_back<C.producer_registers()>();
      if (team.warp() % 4 == 0) produce_keys(params, shared);
      if (team.warp() % 4 == 1)
        Items::schedule(params.a, params.tiles, items, 0, &shared.note(0), shared.note_full, shared.note_empty);
      if (team.warp() % 4 == 2) produce_values(params, shared);
    }
  }
};

}  // namespace cermet::attention
#endif
