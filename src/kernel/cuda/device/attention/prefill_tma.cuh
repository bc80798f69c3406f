// Attention of many queries on Hopper (sm_90a), 16 bits: o[r] = sum over keys of softmax(scale * q[r] . k)[j] * v[j],
// rows r = query x head of the group that shares a key-value head, sequences side by side, keys in a list or in pages.
//
//   Tiles      An item is a key-value head and TOK = ROWS / group tokens of a sequence, against tiles of KEYS keys:
//                head sizes up to   64   64, long   80   96   112  128, few rows  128, long  192  256
//                consumers x 64     3    3          3    3    3    2              3          2    2    = ROWS
//                KEYS               96   112        112  96   80   128            80         96   64
//                stages             4    4          2    2    2    2              3          2    2
//              With weights in two parts: 2 consumers and 128, 128, 96 or 48 keys.
//   Threads    warpgroups 0 .. consumers - 1    64 rows each; with 3 and more they take turns in issuing products, so
//                                               that one's exponentials run beside the others' products
//              the last warpgroup               warp 0 copies, warp 1 finds items, the others leave
//   Shared     0                    queries     [query_buffers] (pieces of 64 columns, ROWS, 128 bytes); results leave
//   memory                                      through the buffer of their own rows
//              + query_bytes ..     keys        [stages] (pieces, KEYS, 128 bytes)
//              + key_bytes ..       values      [stages] (pieces, KEYS, 128 bytes)
//              + value_bytes ..     notes       [2] of 64 bytes: items
//              + 64 ..              barriers    full and empty of queries, keys, values and notes; one of tails
//              All tiles have the 128-byte swizzle. Head size 128, long: 2 x 48 + 3 x 20 + 3 x 20 KiB.
//   Phases     schedule()  warp 1: items of the block, longest first (tile_order.cuh), one ahead of the consumers
//              produce()   warp 0: queries, then keys of tile j + 1 and values of tile j, by TMA; makes rows of values
//                          zero that are not the sequence's, which may hold NaN
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

#include "kernel/cuda/device/attention/prefill_tma_output.cuh"
#include "kernel/cuda/device/attention/tile_order.cuh"
#include "kernel/cuda/device/overlap.cuh"
#include "kernel/cuda/device/ptx/barrier.cuh"
#include "kernel/cuda/device/ptx/mbarrier.cuh"
#include "kernel/cuda/device/ptx/tma.cuh"
#include "kernel/cuda/device/ptx/wgmma.cuh"

#if CERMET_ARCH >= 900
namespace cermet::attention {

template <TmaPrefillConfig C>
struct TmaPrefillTask {
  using Params = TmaPrefillParams;
  using T = Element<C.kv>;
  static constexpr int keys = C.keys, rows = C.rows(), columns = C.value_columns();
  static constexpr int steps = keys / 16;  // products with the values of a tile
  static constexpr bool paged = C.block != 0, takes_turns = C.warpgroups >= 3;
  static constexpr int box_rows = C.box_rows(), boxes = keys / box_rows;
  static_assert(boxes <= 32 && box_rows % 8 == 0 && keys % 16 == 0);
  static_assert(sizeof(PrefillNote) <= C.note_bytes);

  // ---- Shared memory

  struct Shared {
    char *queries, *keys, *values, *notes;
    uint64_t *query_full, *query_empty;                         // (query_buffers)
    uint64_t *key_full, *key_empty, *value_full, *value_empty;  // (stages)
    uint64_t *note_full, *note_empty;                           // (notes)
    uint64_t* tail;

    CERMET_DEVICE explicit Shared(char* smem)
        : queries(smem),
          keys(queries + C.query_buffers * C.query_bytes()),
          values(keys + C.stages * C.key_bytes()),
          notes(values + C.stages * C.value_bytes()) {
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
      ptx::mbarrier_init(shared.note_empty + i, consumer_warps + 1);
    }
    ptx::mbarrier_init(shared.tail, 1);
    ptx::fence_mbarrier_init();
    ptx::prefetch_tensor_map(&p.q);
    ptx::prefetch_tensor_map(&p.k);
    ptx::prefetch_tensor_map(&p.v);
  }

  /// By a whole warp.
  static CERMET_DEVICE void arrive(uint64_t* barrier) {
    __syncwarp();
    if (lane_index() == 0) ptx::mbarrier_arrive(barrier);
  }

  // ---- Items: a warp

  static CERMET_DEVICE void write_note(const attention::Params& p, const TilePlace& place, int kv_head,
                                       PrefillNote& note) {
    const Sequence s = sequence_of(p, place.sequence, C.block);
    const int before = place.index * C.tokens(), count = min_of(C.tokens(), s.end - s.begin - before);
    note.sequence = place.sequence;
    note.token = s.begin + before;
    note.rows = count * C.group;
    note.kv_head = kv_head;
    note.keys = s.keys;
    note.key_begin = static_cast<int>(s.key_begin);
    note.broken = 0;
    const int position = s.keys - (s.end - s.begin) + before;
    note.position = position;
    // Both ends of the keys that a row sees rise with the row.
    const int first = visible_keys(p, position, s.keys).first,
              last = visible_keys(p, position + count - 1, s.keys).last;
    note.first_seen = first;
    note.last = last;
    note.first = first / keys * keys;
    // One at least, of which no row sees a key then.
    note.tiles = first < last ? (last - first / keys * keys + keys - 1) / keys : 1;
  }

  static CERMET_DEVICE void schedule(const Params& params, const BlockItems& items, const Shared& shared) {
    const attention::Params& p = params.a;
    const TileOrder order(p, C.tokens(), C.block, keys);
    NoteSlot slot(0);
#pragma unroll 1
    for (uint32_t round = 0;; ++round) {
      const int item = item_of_round(items, round);
      TilePlace place{-1, 0};
      if (item >= 0) place = order.place(p, item / p.kv_heads, params.tiles, C.block);
      if (item >= 0 && place.sequence < 0) continue;
      ptx::mbarrier_wait(shared.note_empty + slot.stage, slot.phase ^ 1);
      if (lane_index() == 0) {
        if (item >= 0) write_note(p, place, item % p.kv_heads, shared.note(slot.stage));
        else shared.note(slot.stage).tiles = -1;
      }
      arrive(shared.note_full + slot.stage);
      if (item < 0) return;
      slot.advance();
    }
  }

  // ---- Copies: a warp, of which each lane has a box of a tile

  /// Page of the lane's box of the tile at `first`: 0 where keys are not paged, -1 where the box is not wanted.
  static CERMET_DEVICE int page_of(const attention::Params& p, PrefillNote& note, int first) {
    const int lane = static_cast<int>(lane_index()), key = first + lane * box_rows;
    if (lane >= boxes) return -1;
    if constexpr (paged) {
      if (key >= note.keys || key + box_rows <= note.first_seen) return -1;
      const int page = p.block_tables[note.sequence * p.table_stride + key / C.block];
      if (page >= 0 && page < p.blocks) return page;
      if (key < note.last) note.broken = 1;
      return -1;
    } else {
      return 0;
    }
  }

  template <int Pieces>
  static CERMET_DEVICE void copy(const TensorMapBytes* map, const PrefillNote& note, int first, int page, char* to,
                                 uint64_t* full) {
    const int lane = static_cast<int>(lane_index()), key = first + lane * box_rows;
    const uint32_t wanted = __ballot_sync(0xffffffffu, page >= 0);
    if (lane == 0) ptx::mbarrier_arrive_expect(full, static_cast<uint32_t>(__popc(wanted) * (Pieces * box_rows * 128)));
    __syncwarp();
    if (page < 0) return;
    const int row = paged ? key % (paged ? C.block : 1) : note.key_begin + key;
#pragma unroll
    for (int piece = 0; piece < Pieces; ++piece)
      ptx::tma_load_4d(to + piece * (keys * 128) + lane * (box_rows * 128), map, 64 * piece, row, note.kv_head, page,
                       full);
  }

  /// Rows of values that are none of the sequence's, before and after those that are.
  struct Unseen {
    int before, from;
  };
  static CERMET_DEVICE Unseen unseen(const attention::Params& p, const PrefillNote& note, int first) {
    // What lies outside the map has arrived as zeros.
    const bool ends = first + keys > note.keys && (paged || note.key_begin + note.keys < p.key_tokens);
    return {paged ? max_of(0, (note.first_seen - first) / box_rows * box_rows) : 0, ends ? note.keys - first : keys};
  }
  static CERMET_DEVICE void clear(char* tile, const Unseen& rows_of) {
    for (int i = static_cast<int>(lane_index()); i < C.pieces(C.value_size) * keys * 8; i += 32) {
      const int row = i / 8 % keys;
      if (row < rows_of.before || row >= rows_of.from) reinterpret_cast<uint4*>(tile)[i] = uint4{0, 0, 0, 0};
    }
    ptx::fence_async_shared();
  }

  static CERMET_DEVICE void produce(const Params& params, const Shared& shared) {
    const attention::Params& p = params.a;
    constexpr int key_pieces = C.pieces(C.head_size), value_pieces = C.pieces(C.value_size);
    uint32_t all_tiles = 0, tails = 0;  // of the items before
#pragma unroll 1
    for (uint32_t item = 0;; ++item) {
      const NoteSlot note_slot(item);
      ptx::mbarrier_wait(shared.note_full + note_slot.stage, note_slot.phase);
      PrefillNote& note = shared.note(note_slot.stage);
      if (note.tiles < 0) return;
      int first = note.first, page = note.tiles > 0 ? page_of(p, note, first) : -1;
      const QuerySlot query_slot(item);
      ptx::mbarrier_wait(shared.query_empty + query_slot.stage, query_slot.phase ^ 1);
      if (ptx::elect_one()) {
        uint64_t* const full = shared.query_full + query_slot.stage;
        ptx::mbarrier_arrive_expect(full, key_pieces * C.tokens() * C.group * 128);
#pragma unroll
        for (int piece = 0; piece < key_pieces; ++piece)
          ptx::tma_load_4d(shared.queries + query_slot.stage * C.query_bytes() + piece * (rows * 128), &params.q,
                           64 * piece, note.kv_head * C.group, note.token, 0, full);
      }
      __syncwarp();
      int value_page = -1;
#pragma unroll 1
      for (int tile = 0; tile <= note.tiles; ++tile) {
        int next_page = -1;
        if (tile < note.tiles) {
          if (tile + 1 < note.tiles) next_page = page_of(p, note, first + keys);
          const Slot slot(all_tiles + tile);
          ptx::mbarrier_wait(shared.key_empty + slot.stage, slot.phase ^ 1);
          copy<key_pieces>(&params.k, note, first, page, shared.key(slot.stage), shared.key_full + slot.stage);
        }
        if (tile > 0) {
          const Slot slot(all_tiles + tile - 1);
          ptx::mbarrier_wait(shared.value_empty + slot.stage, slot.phase ^ 1);
          char* const to = shared.value(slot.stage);
          uint64_t* const full = shared.value_full + slot.stage;
          const Unseen rows_of = unseen(p, note, first - keys);
          const bool clears = rows_of.before > 0 || rows_of.from < keys;
          copy<value_pieces>(&params.v, note, first - keys, value_page, to, clears ? shared.tail : full);
          if (clears) {
            ptx::mbarrier_wait(shared.tail, tails++ & 1);
            clear(to, rows_of);
            arrive(full);
          }
        }
        value_page = page, page = next_page;
        first += keys;
      }
      all_tiles += note.tiles;
      arrive(shared.note_empty + note_slot.stage);
    }
  }

  // ---- Consumers

  /// Weights as fragments of the left operand.
  using Weights = uint32_t[C.parts][steps][4];

  /// Starts scores = queries * keys.
  static CERMET_DEVICE void multiply_keys(const char* queries, const char* tile, float (&scores)[keys / 2]) {
    const uint64_t a = ptx::wgmma_descriptor(queries), b = ptx::wgmma_descriptor(tile);
    ptx::wgmma_fence();
#pragma unroll
    for (int i = 0; i < (C.head_size + 15) / 16; ++i)
      ptx::Wgmma<keys, T, T>::multiply(scores, a + i / 4 * (rows * 128 / 16) + i % 4 * 2,
                                       b + i / 4 * (keys * 128 / 16) + i % 4 * 2, i > 0);
    ptx::wgmma_commit();
  }

  /// Starts output += weights * values.
  static CERMET_DEVICE void multiply_values(const Weights& weights, const char* tile, float (&output)[columns / 2]) {
    const uint64_t b = ptx::wgmma_descriptor_columns(tile, keys * 128);
    ptx::wgmma_fence();
#pragma unroll
    for (int part = 0; part < C.parts; ++part)
#pragma unroll
      for (int step = 0; step < steps; ++step)
        ptx::WgmmaRows<columns, T>::multiply(output, weights[part][step], b + 128 * step);
    ptx::wgmma_commit();
  }

  static CERMET_DEVICE void pack_weights(const float (&scores)[keys / 2], Weights& weights) {
#pragma unroll
    for (int step = 0; step < steps; ++step)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float a = scores[8 * step + 2 * i], b = scores[8 * step + 2 * i + 1];
        weights[0][step][i] = pack(a, b, T{});
        if constexpr (C.parts == 2) weights[1][step][i] = pack_rest<T>(a, b, weights[0][step][i]);
      }
  }

  template <int size>
  static CERMET_DEVICE void touch(float (&list)[size]) {
#pragma unroll
    for (int i = 0; i < size; ++i) ptx::wgmma_touch(list[i]);
  }
  /// Products have read the weights.
  static CERMET_DEVICE void touch(Weights& weights) {
#pragma unroll
    for (int i = 0; i < C.parts * steps * 4; ++i)
      asm volatile("" : "+r"(weights[i / (steps * 4)][i / 4 % steps][i % 4])::"memory");
  }

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
      arrive(shared.key_empty + Slot(tile).stage);
      softmax.begin(params, note, scores);
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
        const bool moves = softmax.add(params, note, first, queries, shared.key(slot.stage), scores, shrink);
        arrive(shared.key_empty + slot.stage);
        ptx::wgmma_wait<0>();
        touch(output);
        touch(weights);
        arrive(shared.value_empty + values.stage);
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
      arrive(shared.value_empty + last.stage);
      if constexpr (ends_early) {
#pragma unroll 1
        for (; first < note.last; first += keys) {
          const Slot slot(tile++);
          ptx::mbarrier_wait(shared.key_full + slot.stage, slot.phase);
          if constexpr (takes_turns) {
            team.sync_part(warpgroup, turn);
            team.arrive_part(next_turn, turn);
          }
          arrive(shared.key_empty + slot.stage);
          ptx::mbarrier_wait(shared.value_full + slot.stage, slot.phase);
          arrive(shared.value_empty + slot.stage);
        }
      }
      PrefillOutput<C>{params.a, note, softmax}.store(output, queries + softmax.warp_row() * 128,
                                                      [&] { arrive(shared.query_empty + query_slot.stage); });
      arrive(shared.note_empty + note_slot.stage);
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
      if (team.warp() % 4 == 0) produce(params, shared);
      if (team.warp() % 4 == 1) schedule(params, items, shared);
    }
  }
};

}  // namespace cermet::attention
#endif
