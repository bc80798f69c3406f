// What the threads of a team do for the second product of a mixture's experts (combine.cuh).
#pragma once

#include "kernel/cuda/device/gemv/combine_choices.cuh"
#include "kernel/cuda/device/gemv/combine_shape.hpp"
#include "kernel/cuda/device/gemv/quantize.cuh"
#include "kernel/cuda/device/gemv/row_sums.cuh"
#include "kernel/cuda/device/gemv/stream_state.cuh"
#include "kernel/cuda/device/overlap.cuh"
#include "kernel/cuda/device/tile/parameters.cuh"

namespace cermet::gemv {

#if CERMET_ARCH >= 900

template <Config C, class E, class Team>
struct CombineBody : CombineChoices<C> {
  using Params = gemv::Params;
  using S32 = Sum<C>;
  using Arithmetic = RowSums<C, E>;
  using Factors = epilogue::ValuesOf<E>;
  static constexpr int element = static_cast<int>(sizeof(Element<C.w>)), count = lane_elements<C.w>;
  static constexpr CombineShape S = combine_shape(C.k, element, C.choices, C.ring_bytes);
  using Held = HeldRow<C, S.held>;
  using CombineChoices<C>::find_groups, CombineChoices<C>::row_of;
  static constexpr bool shares_ring = requires { Team::ring_stages; };  ///< with the tasks before and after
  static constexpr PipelineShape pipeline_shape = [] {
    constexpr PipelineShape shape{S.rows,          S.row_bytes, 1,         S.row_bytes, S.stages,
                                  S.stage_bytes(), C.choices,   S.warps(), element};
    if constexpr (shares_ring) return stream::in_ring_of<Team, S.stage_bytes()>(shape);
    else return shape;
  }();
  using WeightPipeline = Pipeline<pipeline_shape>;
  static constexpr int partial_at = shares_ring ? 0 : S.ring_bytes(), scratch_at = partial_at + S.partial_bytes,
                       barriers_at = scratch_at + S.scratch_bytes;
  static_assert(Team::size == S.threads() && S.row_bytes % 16 == 0 && !C.dual && !C.blocked && !E::column_sums);
  static_assert(batch * most_choices <= 32 * S.warps());

  /// What the warps tell each other about a choice.
  struct Choice {
    int row, group;  // group -1: the row has no weight, and is 0
    float weight, row_scale;
  };
  static CERMET_DEVICE int group_of(const Choice& choice) { return C.rest ? max_of(choice.group, 0) : choice.group; }
  struct Place {
    char* ring;
    S32* partial;      ///< [2][batch][most_choices]
    Choice* choice;    ///< [choices]
    float* largest;    ///< [warps]
    int *row, *group;  ///< [choices], where they are known early
    uint64_t* barriers;
    __device__ explicit Place(char* smem)
        : ring(smem),
          partial(reinterpret_cast<S32*>(smem + partial_at)),
          choice(reinterpret_cast<Choice*>(smem + scratch_at)),
          largest(reinterpret_cast<float*>(smem + scratch_at + most_choices * sizeof(Choice))),
          row(reinterpret_cast<int*>(largest + most_choices)),
          group(row + most_choices),
          barriers(reinterpret_cast<uint64_t*>(smem + barriers_at)) {
      if constexpr (shares_ring) {
        ring = stream::ring_before<Team>(smem);
        barriers = stream::barriers_before<Team>(smem);
      }
    }
  };
  static_assert(most_choices * (sizeof(Choice) + 12) <= S.scratch_bytes);

  static CERMET_DEVICE int begin_of(const Params& p, uint32_t item) {
    return static_cast<int>(share_begin(p.share, p.rest, p.inverse, item));
  }

  /// Columns of an item whose weights are asked for before the wait: as many as the stages hold.
  static CERMET_DEVICE int early_columns(const Params& p) { return p.early != 0 ? S.rows * S.stages : 0; }
  /// By the filling warp, before the wait, where the choices are known.
  static CERMET_DEVICE void feed_early(const Params& p, uint32_t item, const Place& place, PipelineState& at) {
    int row[C.choices], group[C.choices];
#pragma unroll
    for (int j = 0; j < C.choices; ++j) row[j] = row_of(p, j);
    find_groups(p, row, group);
#pragma unroll
    for (int j = 0; j < C.choices; ++j) place.row[j] = row[j], place.group[j] = group[j];
    __syncwarp();
    const int begin = begin_of(p, item), end = begin_of(p, item + 1);
    feed_columns(p, begin, min_of(end, begin + early_columns(p)), group, place, at);
  }
  /// By the filling warp: the rest of an item's columns.
  static CERMET_DEVICE void feed(const Params& p, uint32_t item, const Place& place, PipelineState& at) {
    int group[C.choices];
    if (p.early != 0) {
#pragma unroll
      for (int j = 0; j < C.choices; ++j) group[j] = place.group[j];
    } else {
      int row[C.choices];
#pragma unroll
      for (int j = 0; j < C.choices; ++j) row[j] = row_of(p, j);
      find_groups(p, row, group);
    }
    feed_columns(p, begin_of(p, item) + early_columns(p), begin_of(p, item + 1), group, place, at);
  }
  /// Rows [begin, end) of every choice's weight. A choice that does not exist is given the first expert's.
  static CERMET_DEVICE void feed_columns(const Params& p, int begin, int end, const int (&group)[C.choices],
                                         const Place& place, PipelineState& at) {
    WeightPipeline pipeline(place.ring, place.barriers, at);
    const uint64_t policy = ptx::evict_first_policy();
    const int64_t stride = p.w_stride * element;
    const bool aligned = ((reinterpret_cast<uintptr_t>(p.w) | static_cast<uintptr_t>(stride) |
                           static_cast<uintptr_t>(p.w_group_stride * element)) &
                          15) == 0;
#pragma unroll 1
    for (int first = begin; first < end; first += S.rows) {
      const int rows = min_of(S.rows, end - first);
      char* const stage = place.ring + pipeline.stage * pipeline_shape.stage_bytes;
      uint64_t* const full = &pipeline.full[pipeline.stage];
      pipeline.wait_for_room();
      if (aligned && ptx::elect_one())
        ptx::mbarrier_arrive_expect(full, static_cast<uint32_t>(C.choices * rows * S.row_bytes));
#pragma unroll
      for (int j = 0; j < C.choices; ++j) {
        const char* const from =
            static_cast<const char*>(p.w) + max_of(group[j], 0) * p.w_group_stride * element + first * stride;
        char* const to = stage + j * S.rows * S.row_bytes;
        if (!aligned) {
          WeightPipeline::fill_elements(to, from, stride, rows, S.row_bytes);
        } else if (ptx::elect_one()) {
          if (stride == S.row_bytes) {
            ptx::bulk_copy(to, from, rows * S.row_bytes, full, policy);
          } else {
#pragma unroll 1
            for (int r = 0; r < rows; ++r)
              ptx::bulk_copy(to + r * S.row_bytes, from + r * stride, S.row_bytes, full, policy);
          }
        }
      }
      if (!aligned) {
        __syncwarp();
        if (lane_index() == 0) ptx::mbarrier_arrive(full);
      }
      pipeline.advance();
    }
    at = pipeline.state();
  }

  /// The part of row `row` of x that meets this lane's pieces of the weight; returns the scale of a row that is
  /// quantized here.
  static CERMET_DEVICE float load(const Params& p, int row, int a, Held& held, const Place& place) {
    using X = Element<C.x>;
    const X* const x = static_cast<const X*>(p.x) + row * p.x_stride;
    const auto first_of = [a](int j) { return ((j * S.along + a) * 32 + static_cast<int>(lane_index())) * count; };
    if constexpr (C.prologue.quantize) {
      constexpr QuantizedFormat codes{.dtype = C.prologue.codes, .wide = C.prologue.wide};
      float numbers[S.held][count];
#pragma unroll
      for (int j = 0; j < S.held; ++j) load_floats(x, first_of(j), C.k, numbers[j]);
      float largest = lanes_reduce<Magnitude, 32>(magnitude<S.held>(numbers));
      if constexpr (S.along > 1) {
        const int warp = static_cast<int>(Team::warp());
        if (lane_index() == 0) place.largest[warp] = largest;
        Team::sync_part(0, 32 * S.warps());
#pragma unroll
        for (int i = 0; i < S.along; ++i)
          largest = Magnitude::combine(largest, place.largest[warp / S.along * S.along + i]);
      }
      return quantize<codes, true, S.held>(numbers, largest, held.v);
    } else if constexpr (integer<C>) {
#pragma unroll
      for (int j = 0; j < S.held; ++j)
        held.v[j] = load_piece<int8_t>(reinterpret_cast<const char*>(x), first_of(j), C.k);
      return 1.0f;
    } else {
#pragma unroll
      for (int j = 0; j < S.held; ++j) load_floats(x, first_of(j), C.k, held.v[j]);
      return 1.0f;
    }
  }

  /// Adds up the choices of `rows` columns from `column` on and stores them.
  static CERMET_DEVICE void finish_batch(const Params& p, int column, int rows, int end, const S32* partial,
                                         const Place& place, Factors& factors) {
    Team::sync_part(0, 32 * S.warps());
    const int thread = static_cast<int>(Team::rank()), r = thread / most_choices, q = thread % most_choices;
    if (thread >= batch * most_choices) return;
    const int choice = min_of(q / S.along, C.choices - 1);
    S32 sum = q < S.warps() ? partial[r * most_choices + q] : S32{};
#pragma unroll
    for (int width = S.along / 2; width > 0; width /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, width);
    float value;
    if constexpr (C.prologue.quantize)
      value = static_cast<float>(E::value(sum, place.choice[choice].row_scale, factors));
    else value = static_cast<float>(E::value(sum, factors));
    if constexpr (C.rest)
      if (place.choice[choice].group < 0) value = 0;
    float total = 0;
    const int first = static_cast<int>(lane_index()) / most_choices * most_choices;
#pragma unroll
    for (int j = 0; j < C.choices; ++j)
      total = fmaf(place.choice[j].weight, __shfl_sync(0xffffffffu, value, first + j * S.along), total);
    using Out = Element<E::out>;
    if (q == 0 && r < rows) static_cast<Out*>(p.y)[column + r] = epilogue::rounded<Out>(total);
    if (column + batch + r < end)
      epilogue::load_place<E>(p.extra, place.choice[choice].row, column + batch + r, group_of(place.choice[choice]),
                              factors);
  }

  static CERMET_DEVICE void run(const Params& p, uint32_t item, const Place& place, int& buffer, PipelineState& at) {
    WeightPipeline pipeline(place.ring, place.barriers, at);
    const int warp = static_cast<int>(Team::warp()), lane = static_cast<int>(lane_index()), own = warp / S.along,
              a = warp % S.along;
    const int begin = begin_of(p, item), end = begin_of(p, item + 1), columns = end - begin;
    const int row[1] = {p.early != 0 ? place.row[own] : row_of(p, own)};
    int group[1];
    const float weight = p.weights[own];
    if (p.early != 0) group[0] = place.group[own];
    else find_groups(p, row, group);
    Held x;
    const float row_scale = load(p, max_of(row[0], 0), a, x, place);
    bool in_rest = false;
    if constexpr (C.rest)
      in_rest = row[0] >= 0 && row[0] >= static_cast<const Element<C.offsets>*>(p.offsets)[p.groups];
    if (lane == 0 && a == 0)
      place.choice[own] = {max_of(row[0], 0), in_rest ? -1 : max_of(group[0], 0),
                           group[0] < 0 && !in_rest ? quiet_nan() : weight, row_scale};
    Team::sync_part(0, 32 * S.warps());
    Factors factors;
    const int thread = static_cast<int>(Team::rank());
    if (thread < batch * most_choices) {
      const Choice& choice = place.choice[min_of(thread % most_choices / S.along, C.choices - 1)];
      epilogue::load_row<E>(p.extra, choice.row, group_of(choice), factors);
      epilogue::load_place<E>(p.extra, choice.row, min_of(begin + thread / most_choices, p.columns - 1),
                              group_of(choice), factors);
    }
#pragma unroll 1
    for (int first = 0; first < columns; first += S.rows) {
      S32* const partial = place.partial + buffer * batch * most_choices;
      S32 value[S.rows], other[S.rows];
#pragma unroll
      for (int r = 0; r < S.rows; ++r) value[r] = other[r] = 0;
      const char* const stage = pipeline.wait() + own * S.rows * S.row_bytes + (a * 32 + lane) * 16;
#pragma unroll
      for (int j = 0; j < S.held; ++j) {
        if (S.row_bytes % (piece_bytes * S.along) != 0 && ((j * S.along + a) * 32 + lane) * 16 >= S.row_bytes) continue;
#pragma unroll
        for (int r = 0; r < S.rows; ++r)
          Arithmetic::multiply(*reinterpret_cast<const Piece*>(stage + r * S.row_bytes + j * S.along * piece_bytes),
                               x.v[j], value[r], other[r]);
      }
      pipeline.release();
      if constexpr (!integer<C>)
#pragma unroll
        for (int r = 0; r < S.rows; ++r) value[r] += other[r];
      const S32 sum = Arithmetic::fold(value);
      if (lane % (32 / S.rows) == 0) partial[(first + lane / (32 / S.rows)) % batch * most_choices + warp] = sum;
      const int batch_first = first / batch * batch;
      if (first + S.rows == batch_first + batch || first + S.rows >= columns) {
        finish_batch(p, begin + batch_first, min_of(batch, columns - batch_first), end, partial, place, factors);
        buffer ^= 1;
      }
    }
    at = pipeline.state();
    Team::sync_part(0, 32 * S.warps());  // the next item overwrites what the warps tell each other
  }
};

#endif

}  // namespace cermet::gemv
