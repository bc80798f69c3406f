// What the threads of a team do for a GEMV of one row at a time (row.cuh).
#pragma once

#include "kernel/cuda/device/gemv/compact.cuh"
#include "kernel/cuda/device/gemv/finish.cuh"
#include "kernel/cuda/device/gemv/prologue.cuh"
#include "kernel/cuda/device/gemv/rotation.cuh"
#include "kernel/cuda/device/gemv/stream_state.cuh"
#include "kernel/cuda/device/overlap.cuh"
#include "kernel/cuda/device/tile/parameters.cuh"

namespace cermet::gemv {

/// What the threads of a team do. E: the epilogue, see tile/epilogue.cuh.
template <Config C, class E, class Team>
struct RowBody : RowSums<C, E> {
  using Params = gemv::Params;
  using Base = RowSums<C, E>;
  using Work = RowWork<C>;
  using W = Element<C.w>;
  using Base::hand_over, Base::matrices, Base::multiply_rows, Base::ordered, Base::S, Base::sums;
  using typename Base::Held;
  using typename Base::Pass;
  using typename Base::S32;
  using typename Base::Segment;
  using typename Base::Sums;
  using Start = typename Work::Start;
  using Finish = typename FinishOf<C, E, Team>::type;
  using Loader = RowLoader<C, S, Team>;
  static constexpr int element = Work::element;
  static constexpr bool shares_ring = C.stream && requires { Team::ring_stages; };  ///< with the tasks before and after
  static constexpr bool publishes = C.routed && !shares_ring;  ///< the filling warp stores where rows are
  static constexpr int partial_at = shares_ring ? 0 : S.ring_bytes(),
                       scratch_at = partial_at + up(S.partial_bytes(), 16) * 16;  ///< in shared memory
  static constexpr int barriers_at = scratch_at + RowShape::scratch_bytes;
  static_assert(shares_ring || barriers_at + 16 * S.stages == S.shared_bytes());
  static_assert(Team::size == S.threads());

  struct Place {
    S32* partial;    ///< [2][sums][batch][slots]
    float* scratch;  ///< [warps]
    char* ring;
    uint64_t* barriers;
    __device__ explicit Place(char* smem)
        : partial(reinterpret_cast<S32*>(smem + partial_at)),
          scratch(reinterpret_cast<float*>(smem + scratch_at)),
          ring(smem),
          barriers(reinterpret_cast<uint64_t*>(smem + barriers_at)) {
      if constexpr (shares_ring) {
        ring = stream::ring_before<Team>(smem);
        barriers = stream::barriers_before<Team>(smem);
      }
    }
  };

  /// With `waits`, a rehearsal first: what it reads for the first time, parameters and its own code, takes longer than
  /// the work. One code for both, therefore.
  template <class Source>
  static CERMET_DEVICE void multiply_segment(const Params& p, const Segment& s, const Place& place, int& buffer,
                                             bool waits, Source&& source) {
    if constexpr (C.rehearses && !shares_ring) {
#pragma unroll 1
      for (bool rehearsal = waits;; rehearsal = false) {
        if (waits && !rehearsal) {
          wait_for_earlier_launches();
          if constexpr (C.late) start_next_launch();
        }
        multiply_part(p, s, place, buffer, rehearsal, source);
        if (!rehearsal) return;
      }
    } else {
      multiply_part(p, s, place, buffer, false, source);
    }
  }

  /// A rehearsal takes a row as it is while others may write it, and a stage without waiting for it: its segment has no
  /// results.
  template <class Source>
  static CERMET_DEVICE void multiply_part(const Params& p, const Segment& given, const Place& place, int& buffer,
                                          bool rehearsal, Source&& source) {
    const int warp = static_cast<int>(Team::warp()), lane = static_cast<int>(lane_index());
    const Segment s{given.row, given.group, given.first, rehearsal ? given.first : given.end, given.x_row};
    Held x;
    Finish finish(p, s);
    const float row_scale =
        Loader::load(p, s.x_row, warp % S.along, !rehearsal && s.first == 0 && warp < S.along, x, place.scratch);
    Pass pass{p, s, x, place.partial, warp % S.along, warp / S.along, lane, row_scale, rehearsal, {}};
    if constexpr (C.blocked && !integer<C>)
#pragma unroll
      for (int j = 0; j < S.held; ++j) {
        const int block = min_of((j * S.along + pass.a) * 4 + lane / 8, (C.k - 1) / scale_block);
        pass.x_scales[j] = p.x_scale == nullptr ? 1.0f : p.x_scale[s.row * p.x_scale_stride + block * p.x_scale_block];
      }
    finish.load(p, s);
    const int rows = rehearsal ? S.stage_rows : Finish::rows_of(s);
#pragma unroll 1
    for (int row = 0; row < rows; row += S.stage_rows) {
      S32* const partial = place.partial + buffer * sums * batch * S.slots;
#pragma unroll
      for (int m = 0; m < matrices; ++m) {
        Sums own_sums;
        own_sums.clear();
        source(pass, row, m, own_sums, partial + m * batch * S.slots);
        hand_over(pass, row, own_sums, partial + m * batch * S.slots);
      }
      const int first = row / batch * batch;
      if (row + S.stage_rows == first + batch || row + S.stage_rows >= rows) {
        finish.finish(pass, first, partial);
        buffer ^= 1;
      }
    }
  }

  /// Weights straight from memory.
  static CERMET_DEVICE void run_direct(const Params& p, const Start& start, const Place& place, int& buffer) {
    const Route<C> route(p);
    if constexpr (C.routed)
      if (start.is_first() && Team::warp() == 0) route.store(p), route.store_weights(p);
    Work::for_segments(p, start, route, [&](const Segment& s) {
      const char* const base = static_cast<const char*>(p.w) + s.group * p.w_group_stride * element;
      multiply_segment(p, s, place, buffer, false, [&](const Pass& pass, int row, int m, Sums& sums, S32* partial) {
        const char* const matrix =
            m == 0 ? base : static_cast<const char*>(p.w_up) + s.group * p.w_group_stride * element;
        const int64_t stride = (m == 0 ? p.w_stride : p.w_up_stride) * element;
        multiply_rows(pass, row, m, 0, S.held, sums, partial, [&](int r, int j) {
          const int column = Finish::column_of(s, row + r * S.side + pass.warp_n);
          return load_piece<W>(matrix + column * stride, ((j * S.along + pass.a) * 32 + pass.lane) * 16, S.row_bytes);
        });
      });
    });
  }

#if CERMET_ARCH >= 900
  static constexpr PipelineShape pipeline_shape = [] {
    constexpr PipelineShape shape{S.stage_rows,    S.chunk,  S.chunks, S.row_bytes, S.stages > 0 ? S.stages : 1,
                                  S.stage_bytes(), matrices, S.warps,  element,     C.in_flight};
    if constexpr (shares_ring) return stream::in_ring_of<Team, S.stage_bytes()>(shape);
    else return shape;
  }();
  using WeightPipeline = Pipeline<pipeline_shape>;

  static CERMET_DEVICE void run_stream(const Params& p, const Start& start, const Place& place, int& buffer,
                                       PipelineState& at, bool waits = false) {
    WeightPipeline pipeline(place.ring, place.barriers, at);
    constexpr int per_chunk = S.chunks == 1 ? S.held : S.chunk / (S.piece * S.along);  // pieces of a warp in a stage
    Work::for_segments(p, start, Route<C>(p), [&](const Segment& s) {
      multiply_segment(p, s, place, buffer, waits, [&](const Pass& pass, int row, int m, Sums& sums, S32* partial) {
#pragma unroll
        for (int chunk = 0; chunk < S.chunks; ++chunk) {
          const char* const stage =
              (pass.rehearsal ? place.ring : pipeline.wait()) + pass.a * S.piece + (C.compact ? 0 : pass.lane * 16);
          multiply_rows(pass, row, m, chunk * per_chunk, (chunk + 1) * per_chunk, sums, partial, [&](int r, int j) {
            const int offset = (j - chunk * per_chunk) * S.along * S.piece;
            if constexpr (C.compact)
              return compact_piece(stage + (r * S.side + pass.warp_n) * S.chunk + offset, pass.lane);
            Piece w{};
            if (S.row_bytes % (S.piece * S.along) == 0 || ((j * S.along + pass.a) * 32 + pass.lane) * 16 < S.row_bytes)
              w = *reinterpret_cast<const Piece*>(stage + (r * S.side + pass.warp_n) * S.chunk + offset);
            return w;
          });
          if (!pass.rehearsal) pipeline.release();
        }
      });
      waits = false;
    });
    at = pipeline.state();
  }

  static CERMET_DEVICE int steps(const WeightRows& w) {
    if constexpr (C.rotation.given) return WeightPipeline::pair_steps(w);
    else return WeightPipeline::steps(w);
  }
  static CERMET_DEVICE void fill(WeightPipeline& pipeline, const WeightRows& w, int index, uint64_t policy) {
    if constexpr (C.rotation.given) pipeline.template fill_pairs<rotation::PairOrder<C.rotation>>(w, index, policy);
    else pipeline.fill(w, index, policy);
  }
  /// Steps of an item that are under way before the launches before it have ended: as many as there are stages, or may
  /// be on their way, of its first row.
  static CERMET_DEVICE int early_steps(const Params& p, const Start& start) {
    if (!Work::starts_early(p)) return 0;
    return min_of(steps(Work::weights_of(p, Work::first_segment(p, start))),
                  C.in_flight > 0 ? min_of(C.in_flight, S.stages) : S.stages);
  }
  /// By the filling warp.
  static CERMET_DEVICE void feed_early(const Params& p, const Start& start, const Place& place, PipelineState& at) {
    WeightPipeline pipeline(place.ring, place.barriers, at);
    const int early = early_steps(p, start);
    if (early == 0) return;
    const WeightRows w = Work::weights_of(p, Work::first_segment(p, start));
    const uint64_t policy = ptx::evict_first_policy();
#pragma unroll 1
    for (int i = 0; i < early; ++i) fill(pipeline, w, i, policy);
    at = pipeline.state();
  }
  /// By the filling warp, which has time when as many stages as may be are on their way: the next launch starts when
  /// the first block has stored where rows are, and may read it before it waits.
  static CERMET_DEVICE void publish(const Params& p, const Start& start, const Route<C>& route) {
    if (start.is_first()) {
      route.store(p);
      __threadfence();
      __syncwarp();
    }
    start_next_launch();
  }
  /// The rest of an item's steps, of whose first row `started` are under way.
  static CERMET_DEVICE void feed(const Params& p, const Start& start, int started, const Place& place,
                                 PipelineState& at) {
    WeightPipeline pipeline(place.ring, place.barriers, at);
    const uint64_t policy = ptx::evict_first_policy();
    const Route<C> route(p);
    [[maybe_unused]] int until_published = C.in_flight > 0 ? C.in_flight : S.stages;
    Work::for_segments(p, start, route, [&](const Segment& s) {
      const WeightRows w = Work::weights_of(p, s);
      const int all = steps(w);
#pragma unroll 1
      for (int i = started; i < all; ++i) {
        fill(pipeline, w, i, policy);
        if constexpr (publishes)
          if (--until_published == 0) publish(p, start, route);
      }
      started = 0;
    });
    if constexpr (publishes) {
      if (until_published > 0) publish(p, start, route);
      if (start.is_first()) route.store_weights(p);
    }
    at = pipeline.state();
  }
#endif
};

}  // namespace cermet::gemv
