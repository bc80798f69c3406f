// GEMV: y[r, n] = epilogue(sum over k of x[r, k] * w[n, k]), one row of x at a time, for one row, for rows that have
// weights of their own (grouped.cuh, routed.cuh), and wherever nothing better fits. Its time is that of reading w.
//
//   x    [rows, K]          any real type, fp8 or int8; a prologue (prologue.cuh) may add, normalize, quantize
//   w    [columns, K]       one weight or two (dual), as stored: bf16, f16, f32, fp8, int8 or compact bf16
//   y    [rows, columns]    the epilogue E (tile/epilogue.cuh) may give a second result
//
// Who does what. The rows * columns results are divided evenly among blocks: an item is such a Share, which ends of
//   rows of y cut into Segments. Consumer warps are `sets` sets of `split_k` warps: the warps of a set divide K between
//   them, sets take rows of a stage in turn. Where weights stream (sm_90 on) one more warp is the producer.
//
// Shared memory            bytes                              of K = 4096 in bf16: 8 consumer warps, split_k = 8
//   ring       stages * stage_bytes           98304   [3 stages][4 rows][8192]; longer rows come in chunks
//   partial    2 * sums * 16 * partials * 4    1024   [2 buffers][1 sum][16 results][8 warps of a set]
//   scratch    256                              256   statistics of the prologue, two floats a warp
//   barriers   16 * stages                       48   full [3], empty [3]
//   In a walk ring and barriers belong to all tasks and lie before the task's own memory (StreamTeam).
//
// Phases of an item        producer                            consumers
//   1 fetch                copies the first stages of w        touch parameters, prefetch weights of a norm
//   2 wait                 for earlier launches, unless w is constant; consumers always
//   3 prologue             copies the other stages             x -> registers, [warp_pieces][16 bytes] a lane
//   4 main loop            wait empty, copy, arrive full       wait full, products, arrive empty; sums of the rows of a
//                                                              stage over each warp -> partial
//   5 epilogue             -                                   after 16 results: partials of split_k warps -> E -> y
#pragma once

#include "kernel/cuda/device/gemv/pipeline.cuh"
#include "kernel/cuda/device/gemv/row.cuh"
#include "kernel/cuda/device/overlap.cuh"
#include "kernel/cuda/device/tile/epilogue.cuh"

namespace cermet::gemv {

/// Rows of a launch that all meet the same weight.
struct OneWeight {
  static constexpr bool sorts = false;  ///< see Routed
  CERMET_DEVICE explicit OneWeight(const Params&) {}
  /// Whether the weights may be fetched before earlier tasks have ended.
  static CERMET_DEVICE bool are_known(const Params& p) { return p.constant != 0; }
};

#if CERMET_ARCH >= 900
/// Rows [first, end) of one or two weights.
struct WeightRows {
  const char* matrix[2];
  int64_t stride[2];  ///< bytes from row to row
  int first = 0, end = 0;
};
#endif

/// Columns one by one, each a row of the stages: what the producer copies for them, and the epilogue.
template <Config C, class E, class Team>
struct Columns : Products<C, E> {
  using Base = Products<C, E>;
  using Base::matrices, Base::ordered, Base::S, Base::sums;
  using typename Base::Pass;
  using typename Base::S32;
  using Factors = epilogue::ValuesOf<E>;
  /// The thread that finishes a result of a batch is the first of `lanes`.
  static constexpr int lanes = ordered ? 1 : S.split_k;

  Factors factors;                          ///< of the result of a batch that the thread finishes
  float column_factors[C.compact ? 2 : 1];  ///< of its sums of a compact row, one of each matrix

  /// Rows of stages that a segment takes.
  static CERMET_DEVICE int rows_of(const Segment& s) { return s.end - s.first; }
  /// The column in a row of the segment's stages; past the end, any of the segment's.
  static CERMET_DEVICE int column_of(const Segment& s, int row) { return min_of(s.first + row, s.end - 1); }

#if CERMET_ARCH >= 900
  /// Stages that rows of weights take: for each group of stage_rows rows, for each matrix, each chunk.
  static CERMET_DEVICE int steps(const WeightRows& w) {
    return (w.end - w.first + S.stage_rows - 1) / S.stage_rows * matrices * S.chunks;
  }
  /// Producer warp: step `index` of `w` into the next stage, once that is empty.
  template <class Pipeline>
  static CERMET_DEVICE void fill(Pipeline& pipeline, const WeightRows& w, int index, uint64_t policy) {
    const int chunk = S.chunks == 1 ? 0 : index % S.chunks, group = S.chunks == 1 ? index : index / S.chunks;
    const int matrix = matrices == 1 ? 0 : group % matrices, row = w.first + group / matrices * S.stage_rows;
    const int rows = min_of(S.stage_rows, w.end - row), bytes = min_of(S.chunk, S.row_bytes - chunk * S.chunk);
    const int64_t stride = w.stride[matrix];
    const char* const from = w.matrix[matrix] + row * stride + chunk * S.chunk;
    char* const to = pipeline.next();  // [stage_rows][chunk]
    uint64_t* const full = &pipeline.full[pipeline.stage];
    pipeline.wait_for_room();
    if (((reinterpret_cast<uintptr_t>(from) | static_cast<uintptr_t>(stride)) & 15) == 0) {
      if (ptx::elect_one()) {
        ptx::mbarrier_arrive_expect(full, static_cast<uint32_t>(rows * bytes));
        if (S.chunks == 1 && stride == S.row_bytes) {
          ptx::bulk_copy(to, from, rows * bytes, full, policy);
        } else {
#pragma unroll 1
          for (int r = 0; r < rows; ++r) ptx::bulk_copy(to + r * S.chunk, from + r * stride, bytes, full, policy);
        }
      }
    } else {
      copy_elements<Base::element>(to, S.chunk, from, stride, rows, bytes);
      __syncwarp();
      if (lane_index() == 0) ptx::mbarrier_arrive(full);
    }
    pipeline.advance();
  }
#endif

  /// Before x is loaded.
  CERMET_DEVICE Columns(const Params&, const Segment&) {}
  /// What the first batch needs, well before its sums are there.
  CERMET_DEVICE void load(const Params& p, const Segment& s) {
    const int own = static_cast<int>(Team::rank()) / lanes;
    if (static_cast<int>(Team::rank()) % lanes != 0 || own >= min_of(batch, s.end - s.first)) return;
    epilogue::load_row<E>(p.extra, s.row, s.group, factors);
    load_column(p, s, s.first + own);
  }
  CERMET_DEVICE void load_column(const Params& p, const Segment& s, int column) {
    epilogue::load_place<E>(p.extra, s.row, column, s.group, factors);
    if constexpr (C.compact) {
      column_factors[0] = p.w_factors[column];
      if constexpr (C.dual) column_factors[1] = p.w_up_factors[column];
    }
  }

  /// Combines the partials of a batch, which begins with row `row` of the segment, stores its results and loads what
  /// the next batch needs.
  CERMET_DEVICE void finish(const Pass& pass, int row, const S32* partial) {
    Team::sync_part(0, 32 * S.warps);
    const int thread = static_cast<int>(Team::rank()), r = thread / lanes, q = thread % lanes;
    if (thread >= batch * lanes) return;
    typename SumOf<integer<C.w> && !ordered>::type value[sums];
#pragma unroll
    for (int m = 0; m < sums; ++m) {
      const S32* const own = partial + (m * batch + r) * S.partials;
      if constexpr (ordered) {
        value[m] = Base::add_blocks(pass, min_of(pass.s.first + row + r, pass.s.end - 1) + m * pass.p.columns, own);
      } else {
        value[m] = own[q];
#pragma unroll
        for (int width = lanes / 2; width > 0; width /= 2) value[m] += __shfl_xor_sync(0xffffffffu, value[m], width);
      }
    }
    if (q == 0 && r < pass.s.end - pass.s.first - row) {
      const int column = pass.s.first + row + r;
      if constexpr (C.compact)
#pragma unroll
        for (int m = 0; m < sums; ++m) value[m] *= column_factors[m];
      store<E>(pass, pass.p.y, pass.s.row * pass.p.y_stride + column, value);
      if constexpr (epilogue::gives_two<E>)
        store<typename E::Second>(pass, pass.p.y_second, pass.s.row * pass.p.y_second_stride + column, value);
      if (column + batch < pass.s.end) load_column(pass.p, pass.s, column + batch);
    }
  }

  template <class Result, class Value>
  CERMET_DEVICE void store(const Pass& pass, void* to, int64_t at, const Value (&value)[sums]) const {
    using Out = Element<Result::out>;
    Out& y = static_cast<Out*>(to)[at];
    if constexpr (sums == 2 && C.prologue.quantize)
      y = epilogue::rounded<Out>(Result::value(value[0], value[1], pass.row_scale, factors));
    else if constexpr (C.prologue.quantize)
      y = epilogue::rounded<Out>(Result::value(value[0], pass.row_scale, factors));
    else if constexpr (sums == 2) y = epilogue::rounded<Out>(Result::value(value[0], value[1], factors));
    else y = epilogue::rounded<Out>(Result::value(value[0], factors));
  }
};

/// What a variant has of its own: parameters, the rows that it multiplies, and how stages hold columns.
struct Plain {
  using Params = gemv::Params;
  using Rows = OneWeight;
  template <Config C, class E, class Team>
  using Columns = gemv::Columns<C, E, Team>;
};

/// What the threads of a team do.
template <Config C, class E, class V, class Team>
struct Body : Products<C, E> {
  using Base = Products<C, E>;
  using Rows = typename V::Rows;
  using Columns = typename V::template Columns<C, E, Team>;
  using Loader = RowLoader<C, Base::S, Team>;
  using W = Element<C.w>;
  using Base::element, Base::matrices, Base::multiply_rows, Base::S, Base::store_partials, Base::sums;
  using typename Base::Pass;
  using typename Base::Row;
  using typename Base::S32;
  using typename Base::Sums;
  static constexpr bool shares_ring = C.stream && requires { Team::ring_stages; };  ///< with the tasks before and after
  static constexpr bool publishes = Rows::sorts && !shares_ring;  ///< the producer stores where rows are
  static constexpr int partial_at = shares_ring ? 0 : S.ring_bytes(),
                       scratch_at = partial_at + up(S.partial_bytes(), 16) * 16,
                       barriers_at = scratch_at + Shape::scratch_bytes;
  static_assert(shares_ring || barriers_at + 16 * S.stages == S.shared_bytes());
  static_assert(Team::size == S.threads());

  struct Memory {
    S32* partial;    ///< [2][sums][batch][partials]
    float* scratch;  ///< [2][warps]
    char* ring;
    uint64_t* barriers;
    __device__ explicit Memory(char* smem)
        : partial(reinterpret_cast<S32*>(smem + partial_at)),
          scratch(reinterpret_cast<float*>(smem + scratch_at)),
          ring(smem),
          barriers(reinterpret_cast<uint64_t*>(smem + barriers_at)) {
      if constexpr (shares_ring) ring = Team::ring(smem), barriers = Team::barriers(smem);
    }
  };

  /// With `waits`, a dry run first: what it reads for the first time, parameters and its own code, takes longer than
  /// the work. One code for both, therefore.
  template <class Multiply>
  static CERMET_DEVICE void multiply_segment(const Params& p, const Segment& s, const Memory& memory, int& buffer,
                                             bool waits, Multiply&& multiply) {
    if constexpr (C.dry_run && !shares_ring) {
#pragma unroll 1
      for (bool dry_run = waits;; dry_run = false) {
        if (waits && !dry_run) {
          wait_for_earlier_launches();
          if constexpr (C.delays_next) start_next_launch();
        }
        multiply_columns(p, s, memory, buffer, dry_run, multiply);
        if (!dry_run) return;
      }
    } else {
      multiply_columns(p, s, memory, buffer, false, multiply);
    }
  }

  /// A dry run takes a row as it is while others may write it, and a stage without waiting for it: its segment has no
  /// results.
  template <class Multiply>
  static CERMET_DEVICE void multiply_columns(const Params& p, const Segment& given, const Memory& memory, int& buffer,
                                             bool dry_run, Multiply&& multiply) {
    const int warp = static_cast<int>(Team::warp()), lane = static_cast<int>(lane_index());
    const Segment s{given.row, given.group, given.first, dry_run ? given.first : given.end, given.x_row};
    Row x;  // [warp_pieces][elements of a lane]
    Columns columns(p, s);
    const float row_scale =
        Loader::load(p, s.x_row, warp % S.split_k, !dry_run && s.first == 0 && warp < S.split_k, x, memory.scratch);
    Pass pass{p, s, x, memory.partial, warp % S.split_k, warp / S.split_k, lane, row_scale, dry_run, {}};
    if constexpr (C.blocked && !integer<C.w>)
#pragma unroll
      for (int j = 0; j < S.warp_pieces; ++j) {
        const int block = min_of((j * S.split_k + pass.a) * 4 + lane / 8, (C.k - 1) / scale_block);
        pass.x_scales[j] = p.x_scale == nullptr ? 1.0f : p.x_scale[s.row * p.x_scale_stride + block * p.x_scale_block];
      }
    columns.load(p, s);
    const int rows = dry_run ? S.stage_rows : Columns::rows_of(s);
#pragma unroll 1
    for (int row = 0; row < rows; row += S.stage_rows) {
      S32* const partial = memory.partial + buffer * sums * batch * S.partials;  // [sums][batch][partials]
#pragma unroll
      for (int m = 0; m < matrices; ++m) {
        Sums stage_sums;  // [warp_rows]
        stage_sums.clear();
        multiply(pass, row, m, stage_sums, partial + m * batch * S.partials);
        store_partials(pass, row, stage_sums, partial + m * batch * S.partials);
      }
      const int first = row / batch * batch;
      if (row + S.stage_rows == first + batch || row + S.stage_rows >= rows) {
        columns.finish(pass, first, partial);
        buffer ^= 1;
      }
    }
  }

  /// Consumers without stages: weights straight from memory.
  static CERMET_DEVICE void run_direct(const Params& p, const Share& share, const Memory& memory, int& buffer) {
    const Rows rows(p);
    if constexpr (Rows::sorts)
      if (share.is_first() && Team::warp() == 0) rows.store(p), rows.store_weights(p);
    share.for_segments(p, rows, [&](const Segment& s) {
      const char* const base = static_cast<const char*>(p.w) + s.group * p.w_group_stride * element;
      multiply_segment(p, s, memory, buffer, false, [&](const Pass& pass, int row, int m, Sums& sums, S32* partial) {
        const char* const matrix =
            m == 0 ? base : static_cast<const char*>(p.w_up) + s.group * p.w_group_stride * element;
        const int64_t stride = (m == 0 ? p.w_stride : p.w_up_stride) * element;
        multiply_rows(pass, row, m, 0, S.warp_pieces, sums, partial, [&](int r, int j) {
          const int column = Columns::column_of(s, pass.row_of(row, r));
          return load_piece<W>(matrix + column * stride, ((j * S.split_k + pass.a) * 32 + pass.lane) * 16, S.row_bytes);
        });
      });
    });
  }

#if CERMET_ARCH >= 900
  static constexpr PipelineShape pipeline_shape =
      in_ring_of<Team, S.stage_bytes()>({S.stages > 0 ? S.stages : 1, S.stage_bytes(), S.warps, C.in_flight});
  using WeightPipeline = Pipeline<pipeline_shape>;

  /// Consumers of stages.
  static CERMET_DEVICE void consume(const Params& p, const Share& share, const Memory& memory, int& buffer,
                                    PipelineState& at, bool waits = false) {
    WeightPipeline pipeline(memory.ring, memory.barriers, at);
    constexpr int per_chunk =
        S.chunks == 1 ? S.warp_pieces : S.chunk / (S.piece * S.split_k);  // pieces of a warp in a stage
    share.for_segments(p, Rows(p), [&](const Segment& s) {
      multiply_segment(p, s, memory, buffer, waits, [&](const Pass& pass, int row, int m, Sums& sums, S32* partial) {
#pragma unroll
        for (int chunk = 0; chunk < S.chunks; ++chunk) {
          const char* const stage = (pass.dry_run ? memory.ring : pipeline.wait()) + pass.a * S.piece +
                                    (C.compact ? 0 : pass.lane * 16);  // [stage_rows][chunk]
          multiply_rows(pass, row, m, chunk * per_chunk, (chunk + 1) * per_chunk, sums, partial, [&](int r, int j) {
            const char* const from =
                stage + pass.row_of(0, r) * S.chunk + (j - chunk * per_chunk) * S.split_k * S.piece;
            if constexpr (C.compact) return compact_piece(from, pass.lane);
            Piece w{};
            if (S.row_bytes % (S.piece * S.split_k) == 0 ||
                ((j * S.split_k + pass.a) * 32 + pass.lane) * 16 < S.row_bytes)
              w = *reinterpret_cast<const Piece*>(from);
            return w;
          });
          if (!pass.dry_run) pipeline.release();
        }
      });
      waits = false;
    });
    at = pipeline.state();
  }

  static CERMET_DEVICE WeightRows weights_of(const Params& p, const Segment& s) {
    const int64_t group = s.group * p.w_group_stride * element;
    return {{static_cast<const char*>(p.w) + group, static_cast<const char*>(p.w_up) + group},
            {p.w_stride * element, p.w_up_stride * element},
            s.first,
            s.end};
  }
  /// Steps of an item that are under way before the launches before it have ended: as many as there are stages, or may
  /// be on their way, of its first row.
  static CERMET_DEVICE int prefetched_steps(const Params& p, const Share& share) {
    if (!Rows::are_known(p)) return 0;
    return min_of(Columns::steps(weights_of(p, share.first_segment(p))),
                  C.in_flight > 0 ? min_of(C.in_flight, S.stages) : S.stages);
  }
  /// Producer, before the wait.
  static CERMET_DEVICE void prefetch(const Params& p, const Share& share, const Memory& memory, PipelineState& at) {
    WeightPipeline pipeline(memory.ring, memory.barriers, at);
    const int steps = prefetched_steps(p, share);
    if (steps == 0) return;
    const WeightRows w = weights_of(p, share.first_segment(p));
    const uint64_t policy = ptx::evict_first_policy();
#pragma unroll 1
    for (int i = 0; i < steps; ++i) Columns::fill(pipeline, w, i, policy);
    at = pipeline.state();
  }
  /// Producer, which has time when as many stages as may be are on their way: the next launch starts when the first
  /// block has stored where rows are, and may read it before it waits.
  static CERMET_DEVICE void publish(const Params& p, const Share& share, const Rows& rows) {
    if (share.is_first()) {
      rows.store(p);
      __threadfence();
      __syncwarp();
    }
    start_next_launch();
  }
  /// Producer: the remaining steps of an item, of whose first row `started` are under way.
  static CERMET_DEVICE void produce(const Params& p, const Share& share, int started, const Memory& memory,
                                    PipelineState& at) {
    WeightPipeline pipeline(memory.ring, memory.barriers, at);
    const uint64_t policy = ptx::evict_first_policy();
    const Rows rows(p);
    [[maybe_unused]] int until_published = C.in_flight > 0 ? C.in_flight : S.stages;
    share.for_segments(p, rows, [&](const Segment& s) {
      const WeightRows w = weights_of(p, s);
      const int all = Columns::steps(w);
#pragma unroll 1
      for (int i = started; i < all; ++i) {
        Columns::fill(pipeline, w, i, policy);
        if constexpr (publishes)
          if (--until_published == 0) publish(p, share, rows);
      }
      started = 0;
    });
    if constexpr (publishes) {
      if (until_published > 0) publish(p, share, rows);
      if (share.is_first()) rows.store_weights(p);
    }
    at = pipeline.state();
  }
#endif
};

/// The task. V: a variant, with the members of Plain.
template <Config C, class E, class V = Plain>
struct Gemv {
  using Params = typename V::Params;
  using Rows = typename V::Rows;
  template <class Team>
  using Body = gemv::Body<C, E, V, Team>;
  static constexpr Overlap overlap = Rows::sorts && C.stream ? Overlap::own
                                     : C.delays_next         ? Overlap::late
                                                             : Overlap::early;
  static constexpr bool waits_itself = C.dry_run;

  /// What lives on from item to item. `buffer`: which of two areas the next partials go to.
  struct Ring {
    int buffer = 0;
    PipelineState at;
    Share share;             ///< of the item that was fetched last
    bool is_open = false;    ///< whether all threads know that the barriers are set up
    bool waits = C.dry_run;  ///< whether this thread has not waited for earlier launches yet

    template <class Team>
    CERMET_DEVICE Ring(const Params&, Team team, char* smem) {
#if CERMET_ARCH >= 900
      if constexpr (C.stream)
        if (team.warp() == Body<Team>::S.warps) init_ring<Body<Team>>(smem, at);
#endif
    }
    template <class Team>
    CERMET_DEVICE void close(const Params&, [[maybe_unused]] Team team, [[maybe_unused]] char* smem) {
#if CERMET_ARCH >= 900
      if constexpr (C.stream) end_ring<Body<Team>>(team, smem);
#endif
    }
  };

  /// Phase 1: all that can be done before the wait for earlier launches, because what comes after it delays every
  /// result.
  template <class Team>
  static CERMET_DEVICE void fetch(const Params& p, uint32_t item, Team team, char* smem, Ring& ring) {
    using B = Body<Team>;
    ring.share = Share(p, item);
#if CERMET_ARCH >= 900
    const bool produces = C.stream && team.warp() == B::S.warps;
    if constexpr (C.stream)
      if (produces) B::prefetch(p, ring.share, typename B::Memory(smem), ring.at);
    if constexpr (requires { Rows::warm_up(p); })
      if (produces) Rows::warm_up(p);
    if (!produces) {
      ring.share.settle();
      if (!ring.is_open) {
        constexpr int all = sizeof(gemv::Params),
                      unused = static_cast<int>((epilogue::most_extras - E::extras) * sizeof(epilogue::Operand));
        touch_parameters<0, all - unused>(p);
        if constexpr (sizeof(Params) > all) touch_parameters<all, sizeof(Params) - all>(p);
        B::Loader::prefetch(p, static_cast<int>(team.warp()) % B::S.split_k);
      }
    }
    if constexpr (C.stream)
      if (!ring.is_open) team.sync();
#endif
    ring.is_open = true;
  }

  /// Phases 3 to 5, after the wait; with a dry run the wait as well.
  template <class Team>
  static CERMET_DEVICE void compute(const Params& p, uint32_t, Team team, char* smem, Ring& ring) {
    using B = Body<Team>;
    const typename B::Memory memory(smem);
    static_assert(CERMET_ARCH >= 900 || !C.stream);
#if CERMET_ARCH >= 900
    if constexpr (C.stream) {
      if (team.warp() == B::S.warps) {
        if (ring.waits && p.constant == 0) wait_for_earlier_launches();
        B::produce(p, ring.share, B::prefetched_steps(p, ring.share), memory, ring.at);
      } else {
        B::consume(p, ring.share, memory, ring.buffer, ring.at, ring.waits);
      }
      ring.waits = false;
      return;
    }
#endif
    if constexpr (!C.stream) B::run_direct(p, ring.share, memory, ring.buffer);
  }

#if CERMET_ARCH >= 900
  /// The same in a walk, where the ring belongs to all tasks (StreamTeam): producer and consumers do not meet.
  static constexpr bool shares_ring = C.stream;

  template <class Team>
  static CERMET_DEVICE bool starts_early(const Params& p, Team) {
    return Rows::are_known(p);
  }
  template <class Team>
  static CERMET_DEVICE void feed(const Params& p, uint32_t item, Team, char* smem, StreamState& at) {
    using B = Body<Team>;
    B::produce(p, Share(p, item), 0, typename B::Memory(smem), at.stages);
  }
  /// What consumers can do before earlier tasks have ended.
  template <class Team>
  static CERMET_DEVICE void prepare(const Params& p, uint32_t, Team team) {
    using B = Body<Team>;
    B::Loader::prefetch(p, static_cast<int>(team.warp()) % B::S.split_k);
  }
  template <class Team>
  static CERMET_DEVICE void multiply(const Params& p, uint32_t item, Team, char* smem, StreamState& at) {
    using B = Body<Team>;
    const Share share(p, item);
    if constexpr (Rows::sorts)  // by a consumer: the block announces its end behind it, not behind the producer
      if (share.is_first() && Team::warp() == 0) {
        const Rows rows(p);
        rows.store(p), rows.store_weights(p);
      }
    B::consume(p, share, typename B::Memory(smem), at.buffer, at.stages);
  }
#endif
};

}  // namespace cermet::gemv
