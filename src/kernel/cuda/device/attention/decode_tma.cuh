// Decoding attention on Hopper (sm_90a): a warp copies whole pages of several key-value heads, the others multiply.
//
// Problem        that of decode.cuh, with rows of the cache of 128, 256 or 512 bytes and pages of whole tiles of 16
//                tokens
// Tiles          KV tile     16 keys and values of `heads` key-value heads; it is a unit, and a stage of the ring
//                query tile  [row_tiles * rows, D] of each of those heads
//                span        all units of one query tile of a sequence and one group of `heads` key-value heads
// Scheduler      that of decode.cuh: units of all spans in order are dealt out evenly, one block on an SM
// Warps          consumer (part, row tile, head)   `rows` rows of a head; every `parts`-th unit of the block
//                the last one                      copies: of a unit two boxes of TMA, keys and values, each of
//                                                  heads x 16 tokens in the order of memory
// Shared memory  0        stages: keys [heads, 16, D], values [heads, 16, Dv], 128-byte lines swizzled (LineRows)
//                +        outputs that warps with the same rows exchange
//                +        for each stage whether its page does not exist, barriers full and empty
// Phases         produce()   waits for an empty stage, copies a unit into it
//                consume()   waits for a full stage: QK, scale and mask, softmax, PV (decode_mma.cuh); at the end of a
//                            span or of the share rows are written (decode_tma_output.cuh), or left in the scratch
//                combine()   of the blocks that have a part of a span, the last to end finds all parts complete and
//                            adds them up. No block waits for another.
// Bytes          keys and values once. D = 128, 8 key-value heads, 64 sequences of 4096 tokens: 1.07 GB, 228 us at 4.70
//                TB/s. Predicted: 238 us.
#pragma once

#include "kernel/cuda/device/attention/decode_tma_output.cuh"
#include "kernel/cuda/device/overlap.cuh"
#include "kernel/cuda/device/ptx/bulk.cuh"
#include "kernel/cuda/device/ptx/mbarrier.cuh"
#include "kernel/cuda/device/ptx/tma.cuh"
#include "kernel/cuda/device/task.cuh"

#if CERMET_ARCH >= 900
namespace cermet::attention {

template <TmaDecodeConfig C>
struct TmaDecodeTask {
  using Params = TmaDecodeParams;
  using Output = TmaDecodeOutput<C>;
  using Mma = typename Output::Mma;
  static constexpr DecodeConfig warp_config = C.warp();
  static constexpr int keys = C.keys;
  static constexpr SchedulerConfig scheduler{C.kv_heads / C.heads, C.group, C.head_rows(), keys, C.block, keys};
  using Scheduler = DecodeScheduler<scheduler>;
  using Consumers = PartTeam<32 * C.consumers()>;
  using SpanPartials = Partials<C.block_rows(), C.value_size, Consumers>;
  using Slot = ptx::RingSlot<C.stages>;
  // Each stage belongs to one part of the warps: others could meet a phase of its barriers that is one turn old.
  static_assert(C.block % keys == 0 && C.kv_heads % C.heads == 0 && C.stages % C.parts == 0);

  /// What a block has of the launch's work, in shared memory: registers are scarce, and it is needed at the end only.
  struct Work {
    WorkUnit begin;
    Share share;
    int units, block, blocks;  ///< units and blocks of the launch
  };
  static_assert(sizeof(Work) <= C.work_bytes);

  struct Shared {
    char* stages;
    float* scales;  ///< (stages) [2][heads][keys]: of keys, then of values
    float* exchange;
    Work* work;
    int* missing;            ///< (stages)
    uint64_t *full, *empty;  ///< (stages)
    CERMET_DEVICE explicit Shared(char* smem)
        : stages(smem),
          scales(reinterpret_cast<float*>(smem + C.stages * C.stage_bytes())),
          exchange(scales + C.stages * C.scale_bytes() / 4),
          work(reinterpret_cast<Work*>(exchange + C.exchange_bytes() / 4)),
          missing(reinterpret_cast<int*>(work) + C.work_bytes / 4),
          full(reinterpret_cast<uint64_t*>(smem + C.shared_bytes()) - 2 * C.stages),
          empty(full + C.stages) {}
    CERMET_DEVICE char* keys_of(int stage) const { return stages + stage * C.stage_bytes(); }
    CERMET_DEVICE float* scales_of(int stage) const { return scales + stage * C.scale_bytes() / 4; }
    CERMET_DEVICE char* values_of(int stage) const { return keys_of(stage) + C.heads * C.tile_bytes(C.head_size); }
  };

  static CERMET_DEVICE void set_up(const Params& params, const Shared& shared) {
    for (int i = 0; i < C.stages; ++i) {
      ptx::mbarrier_init(shared.full + i, 1);
      ptx::mbarrier_init(shared.empty + i, C.writers());
    }
    ptx::fence_mbarrier_init();
    ptx::prefetch_tensor_map(&params.k);
    ptx::prefetch_tensor_map(&params.v);
  }

  // ---- Copies: a warp, whose lanes hold the pages of the next 32 units

  static CERMET_DEVICE int find_page(const attention::Params& p, const WorkUnit& at, int unit) {
    const int page = (at.tile.first_key + unit * keys) / C.block;
    return page < p.pages ? p.block_tables[at.tile.sequence * p.table_stride + page] : -1;
  }

  template <int Size>
  static CERMET_DEVICE void copy(const TensorMapBytes* map, int group, int page, int row, char* to, uint64_t* full) {
    constexpr int lines = C.lines(Size);
    if constexpr (C.heads_first) {
      ptx::tma_load_4d(to, map, 0, lines * row, group * C.heads, page, full);
    } else {
#pragma unroll
      for (int head = 0; head < C.heads; ++head)
        ptx::tma_load_4d(to + head * C.tile_bytes(Size), map, 0, lines * (group * C.heads + head), row, page, full);
    }
  }

  /// Scales of a unit's tokens.
  static CERMET_DEVICE void copy_scales(const KeyList& list, int group, int page, int row, float* to, uint64_t* full) {
    const float* from = list.scale + page * list.scale_page_stride + group * C.heads * list.scale_head_stride + row;
    constexpr int copies = C.block == keys ? 1 : C.heads, each = C.heads * keys / copies;
#pragma unroll
    for (int i = 0; i < copies; ++i) ptx::bulk_load(to + i * each, from + i * list.scale_head_stride, 4 * each, full);
  }

  /// While earlier launches run: prefetches the pages that the block will probably read first. They may not all be
  /// written, and neither may the lengths and tables; what is fetched too early or needlessly costs a little time,
  /// never correctness. Returns where the lane's page is in the table, null where there is none.
  static CERMET_DEVICE const int32_t* prefetch(const Params& params, int block) {
    const attention::Params& p = params.d.a;
    constexpr int groups = scheduler.kv_heads;
    if (p.query_starts || p.window > 0 || C.group > C.head_rows()) return nullptr;
    const int lane = static_cast<int>(lane_index());
    const auto units_of = [&](int b) {  // of a span
      if (b >= p.sequences) return 0;
      return max_of(1, (min_of(max_of(ptx::load_l2(p.context_lens + b), 0), p.pages * C.block) + keys - 1) / keys);
    };
    int all = 0;
#pragma unroll 1
    for (int first = 0; first < p.sequences; first += 32)
      all += static_cast<int>(__reduce_add_sync(0xffffffffu, static_cast<uint32_t>(units_of(first + lane))));
    int at = share_of(all * groups, block, params.d.thread_blocks).begin;
#pragma unroll 1
    for (int first = 0; first < p.sequences; first += 32) {
      const int own = units_of(first + lane);
      int end = own * groups;  // units up to and with that of each lane
#pragma unroll
      for (int offset = 1; offset < 32; offset *= 2) {
        const int below = __shfl_up_sync(0xffffffffu, end, offset);
        if (lane >= offset) end += below;
      }
      const uint32_t holds = __ballot_sync(0xffffffffu, at < end);
      if (holds == 0) {
        at -= __shfl_sync(0xffffffffu, end, 31);
        continue;
      }
      const int owner = __ffs(static_cast<int>(holds)) - 1, units = __shfl_sync(0xffffffffu, own, owner);
      at -= __shfl_sync(0xffffffffu, end, owner) - units * groups;
      const int unit = at % units + lane, row = unit * keys;
      if (unit >= units || row / C.block >= p.pages) return nullptr;
      const int32_t* const place = p.block_tables + (first + owner) * p.table_stride + row / C.block;
      const int page = lane < C.stages ? ptx::load_l2(place) : -1;
      if (page < 0 || page >= p.blocks) return place;
      const auto box = [&]<int Size>(const TensorMapBytes* map) {
        constexpr int lines = C.lines(Size);
        const int head = at / units * C.heads;
        if constexpr (C.heads_first) {
          ptx::tma_prefetch_4d(map, 0, lines * (row % C.block), head, page);
        } else {
          for (int i = 0; i < C.heads; ++i) ptx::tma_prefetch_4d(map, 0, lines * (head + i), row % C.block, page);
        }
      };
      box.template operator()<C.head_size>(&params.k);
      box.template operator()<C.value_size>(&params.v);
      return place;
    }
    return nullptr;
  }

  static CERMET_DEVICE void produce(const Params& params, const Shared& shared, WorkUnit at, int left) {
    const attention::Params& p = params.d.a;
    const int lane = static_cast<int>(lane_index());
    Slot slot(0);
#pragma unroll 1
    while (true) {
      const int units = min_of(left, at.tile.units - at.unit);
      int pages = 0, next_pages = find_page(p, at, at.unit + lane);
#pragma unroll 1
      for (int i = 0; i < units; ++i, slot.advance()) {
        if (i % 32 == 0) {
          pages = next_pages;
          next_pages = find_page(p, at, at.unit + i + 32 + lane);
        }
        const int page = __shfl_sync(0xffffffffu, pages, i % 32), first = at.tile.first_key + (at.unit + i) * keys;
        const bool wanted = first < at.tile.end_key, exists = page >= 0 && page < p.blocks;
        ptx::mbarrier_wait(shared.empty + slot.stage, slot.phase ^ 1);
        if (lane == 0) {
          uint64_t* const full = shared.full + slot.stage;
          shared.missing[slot.stage] = wanted && !exists ? 1 : 0;
          if (wanted && exists) {
            ptx::mbarrier_arrive_expect(full, C.stage_bytes() + C.scale_bytes());
            copy<C.head_size>(&params.k, at.head, page, first % C.block, shared.keys_of(slot.stage), full);
            copy<C.value_size>(&params.v, at.head, page, first % C.block, shared.values_of(slot.stage), full);
            if constexpr (C.token_scales) {
              float* const scales = shared.scales_of(slot.stage);
              copy_scales(p.k, at.head, page, first % C.block, scales, full);
              copy_scales(p.v, at.head, page, first % C.block, scales + C.heads * keys, full);
            }
          } else {
            ptx::mbarrier_arrive(full);
          }
        }
        __syncwarp();
      }
      left -= units;
      if (left == 0) return;
      Scheduler::next_span(p, at);
    }
  }

  // ---- Consumers

  /// A warp's place: of its part, among the warps of a part; its head, and the first of its rows of the head's.
  struct Place {
    int part, writer, head, first_row;
    CERMET_DEVICE explicit Place(int warp)
        : part(warp / C.writers()),
          writer(warp % C.writers()),
          head(writer % C.heads),
          first_row(writer / C.heads * C.rows) {}
    /// The warp's rows of a query tile; may be none.
    CERMET_DEVICE QueryTile rows_of(const QueryTile& tile) const {
      QueryTile own = tile;
      own.first_row += first_row;
      own.rows = max_of(0, min_of(C.rows, tile.rows - first_row));
      return own;
    }
  };

  /// The warp's part of a stage through the online softmax.
  static CERMET_DEVICE void multiply(const DecodeParams& d, const Shared& shared, const Place& place, int stage,
                                     const QueryTile& own, int kv_head, int first, const typename Mma::Queries& queries,
                                     typename Mma::State& state) {
    const char* tile_keys = shared.keys_of(stage) + place.head * C.tile_bytes(C.head_size);
    const char* tile_values = shared.values_of(stage) + place.head * C.tile_bytes(C.value_size);
    [[maybe_unused]] const float* scales = shared.scales_of(stage) + place.head * keys;
    float scores[keys / 8][4];  // [16 rows, keys] over the warp
    if constexpr (Mma::is_quantized) Mma::gemm_qk(queries, tile_keys, scales, scores);
    else Mma::gemm_qk(queries, tile_keys, scores);
    Mma::scale_and_mask(d.a, d.scale_log2, own, kv_head, first, scores);
    Mma::online_softmax(state, scores);
    const auto add_values = [&](const auto& seen) {
      if constexpr (Mma::is_quantized) Mma::gemm_pv(state, scores, tile_values, scales + C.heads * keys, seen);
      else Mma::gemm_pv(state, scores, tile_values, seen);
    };
    if (first >= own.seen_first && first + keys <= own.end_key) add_values(AllValues());
    else add_values(SeenValues<keys>(own.seen_first - first, own.end_key - first));
  }

  static CERMET_DEVICE void consume(const Params& params, const Shared& shared, WorkUnit at) {
    const attention::Params& p = params.d.a;
    const Place place(static_cast<int>(Consumers::warp()));
    const Work& work = *shared.work;
    int done = 0, next = place.part;  // units of the spans before; the warp's next unit
    Slot slot(next);
    bool first_span = true, joined = false;
    typename Mma::Queries queries;
    typename Mma::State state;
#pragma unroll 1
    while (true) {
      const int end = min_of(work.share.end - work.share.begin, done + at.tile.units - at.unit),
                kv_head = at.head * C.heads + place.head;
      const QueryTile own = place.rows_of(at.tile);
      Mma::load_queries(p, own, kv_head, queries);
      Mma::begin_span(p, kv_head, queries, state);
#pragma unroll 1
      for (; next < end; next += C.parts, slot.advance(C.parts)) {
        const int first = at.tile.first_key + (at.unit + next - done) * keys;
        ptx::mbarrier_wait(shared.full + slot.stage, slot.phase);
        if (own.rows > 0 && first < own.end_key)
          multiply(params.d, shared, place, slot.stage, own, kv_head, first, queries, state);
        if (shared.missing[slot.stage] != 0) state.sum[0] = state.sum[Mma::halves - 1] = quiet_nan();
        ptx::mbarrier_arrive_warp(shared.empty + slot.stage);
      }
      const int last_unit = at.unit + end - done - 1;
      const bool whole = last_unit + 1 == at.tile.units && at.unit == 0;
      const int number = first_span ? 0 : 1, block = work.block;
      const SpanPartials partials{p.partials, work.blocks};
      Output output(state);
      output.exchange(shared.exchange, place.writer, place.part,
                      [&] { Consumers::sync_part(place.writer, 32 * C.parts); });
      const int row = place.head * C.head_rows() + place.first_row;
      const bool last = end == work.share.end - work.share.begin,
                 complete = whole || (C.joins && last && at.unit == 0 &&
                                      join(work, at.tile.units, last_unit, partials, place, row, own.rows, output));
      if (place.part == 0) {
        if (complete) output.write(p, own, kv_head);
        else output.template write_partial<SpanPartials>(partials.partial(block, number), row, own.rows);
      }
      if (!complete) {
        Consumers::sync();
        partials.publish(block, number);
      }
      done = end;
      if (last) {
        joined = complete;
        at.unit = last_unit;
        break;
      }
      Scheduler::next_span(p, at);
      first_span = false;
    }
    combine(p, work, at, first_span, joined);
  }

  /// Adds the other blocks' parts of a span that begins in this one to what it has in registers, in the order of
  /// combine(), if they are complete: they are mostly the first that those blocks did.
  static CERMET_DEVICE bool join(const Work& work, int span_units, int last_unit, const SpanPartials& partials,
                                 const Place& place, int row, int rows, Output& output) {
    constexpr int most = 3;
    const int first_unit = work.share.end - 1 - last_unit,
              last = block_of_unit(work.units, first_unit + span_units - 1, work.blocks);
    if (last - work.block > most || !partials.take_if_complete(work.block + 1, last, 0)) return false;
    if (place.part > 0) return true;
    float top[Mma::halves];
#pragma unroll
    for (int h = 0; h < Mma::halves; ++h) top[h] = output.maximum[h];
#pragma unroll 1
    for (int other = work.block + 1; other <= last; ++other) Output::raise(partials.partial(other, 0), row, rows, top);
    output.rescale(top);
#pragma unroll 1
    for (int other = work.block + 1; other <= last; ++other)
      output.template add<SpanPartials>(partials.partial(other, 0), row, rows);
    return true;
  }

  /// Adds up those spans of the share that other blocks have parts of, if this block finds all of them complete.
  /// `joined`: the last one is written already.
  static CERMET_DEVICE void combine(const attention::Params& p, const Work& work, const WorkUnit& at, bool one_span,
                                    bool joined) {
    const auto [begin, share, units, block, blocks] = work;
    const SpanPartials partials{p.partials, blocks};
    for_shared_spans<Consumers>(
        begin, at, share, units, blocks, block, one_span, [&](const WorkUnit& span, int first_unit, int last) {
          constexpr int quads = C.value_size / 4;
          if (joined && first_unit >= share.begin) return;
          const int first = block_of_unit(units, first_unit, blocks),
                    first_number = share_of(units, first, blocks).begin < first_unit ? 1 : 0;
          if (!partials.take_if_complete(first, last, first_number)) return;
          const auto partial = [&](int i) { return partials.partial(i, i == first ? first_number : 0); };
#pragma unroll 1
          for (int i = static_cast<int>(Consumers::rank()); i < C.heads * span.tile.rows * quads;
               i += Consumers::size) {
            const int row = i / quads, d = i % quads * 4, head = row / span.tile.rows, r = row % span.tile.rows;
            write_row<warp_config>(p, span.tile, span.head * C.heads + head, r, d,
                                   add_partials<C.block_rows(), C.value_size, Consumers>(
                                       first, last, head * C.head_rows() + r, d, partial));
          }
        });
  }

  // ---- The task (entry.cuh)

  template <class Team>
  static CERMET_DEVICE void run_all(const Params& params, const BlockItems& items, Team team, char* smem) {
    static_assert(Team::size == C.threads());
    const Shared shared(smem);
    if (team.rank() == 0) set_up(params, shared);
    team.sync();
    if (C.early && !Consumers::contains_this_thread()) {
      const int32_t* const place = prefetch(params, static_cast<int>(items.first));
      wait_for_earlier_launches();
      if (place) ptx::touch(place);  // together with the lengths, which say whether that is it
    }
    wait_for_earlier_launches();
    const int block = static_cast<int>(items.first);
    int units = 0, blocks = params.d.thread_blocks;
    WorkUnit at;
    const Share share = Scheduler::begin(params.d.a, block, params.d.least_units, blocks, at, units);
    if (share.begin == share.end) return;
    if (team.rank() == 0) *shared.work = {at, share, units, block, blocks};
    team.sync();
    if (Consumers::contains_this_thread()) consume(params, shared, at);
    else produce(params, shared, at, share.end - share.begin);
  }
};

}  // namespace cermet::attention
#endif
