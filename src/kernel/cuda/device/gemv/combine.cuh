// The second product of a mixture's experts for one token, whose rows are weighted and added as they are computed:
// y[n] = sum over choices j of weight[j] * E(sum over k of x[row j, k] * w[expert j, n, k]), which is grouped_linear
// and moe_unpermute (sm_90 on).
//
// Who does what. An item is a share of the columns. Each of the token's experts has split_k consumer warps of its own,
//   which divide K; one more warp is the producer.
//
// Shared memory            bytes
//   ring       stages * stage_bytes      [3 stages][choices][rows][row_bytes]: the same rows of each expert's weight
//   partial    2 * 16 * 8 * 4            [2 buffers][16 columns][8 warps]
//   scratch    256                       what warps exchange: the choices, largest magnitudes
//   barriers   16 * stages               full [3], empty [3]
//
// Phases: 1 fetch the first stages, where the launch before has published rows and offsets (Overlap::own); 2 wait;
//   3 rows of x to registers, quantized there where the prologue says so; 4 stages: products, sums over each warp ->
//   partial; 5 after 16 columns: partials of an expert's warps -> E -> weighted, in the order of choices -> y.
#pragma once

#include "kernel/cuda/device/gemv/combine.hpp"
#include "kernel/cuda/device/gemv/pipeline.cuh"
#include "kernel/cuda/device/gemv/row.cuh"
#include "kernel/cuda/device/overlap.cuh"
#include "kernel/cuda/device/ptx/global.cuh"
#include "kernel/cuda/device/tile/epilogue.cuh"
#include "kernel/cuda/device/tile/quantizer.cuh"
#include "kernel/cuda/device/tile/reduce.cuh"

namespace cermet::gemv {

#if CERMET_ARCH >= 900

/// What the threads of a team do.
template <CombineConfig C, class E, class Team>
struct CombineBody {
  using S32 = Sum<C.w>;
  using Arithmetic = Dot<C.w, false>;
  using Factors = epilogue::ValuesOf<E>;
  static constexpr int element = static_cast<int>(sizeof(Element<C.w>)), count = lane_elements<C.w>;
  static constexpr CombineShape S = combine_shape(C.k, element, C.choices, C.ring_bytes);
  using Row = LaneRow<C.w, S.warp_pieces>;
  static constexpr bool shares_ring = requires { Team::ring_stages; };  ///< with the tasks before and after
  static constexpr PipelineShape pipeline_shape =
      in_ring_of<Team, S.stage_bytes()>({S.stages, S.stage_bytes(), S.warps()});
  using WeightPipeline = Pipeline<pipeline_shape>;
  static constexpr int partial_at = shares_ring ? 0 : S.ring_bytes(), scratch_at = partial_at + S.partial_bytes,
                       barriers_at = scratch_at + S.scratch_bytes;
  static_assert(Team::size == S.threads() && S.row_bytes % 16 == 0 && !C.prologue.norm && !E::column_sums);
  static_assert(batch * most_choices <= 32 * S.warps());

  /// A choice, as its warps publish it to the block.
  struct Choice {
    int row, group;  // group -1: the row has no weight, and is 0
    float weight, row_scale;
  };
  static CERMET_DEVICE int group_of(const Choice& choice) { return C.tail ? max_of(choice.group, 0) : choice.group; }
  struct Memory {
    char* ring;
    S32* partial;      ///< [2][batch][most_choices]
    Choice* choice;    ///< [choices]
    float* largest;    ///< [warps]
    int *row, *group;  ///< [choices], where they were published
    uint64_t* barriers;
    __device__ explicit Memory(char* smem)
        : ring(smem),
          partial(reinterpret_cast<S32*>(smem + partial_at)),
          choice(reinterpret_cast<Choice*>(smem + scratch_at)),
          largest(reinterpret_cast<float*>(smem + scratch_at + most_choices * sizeof(Choice))),
          row(reinterpret_cast<int*>(largest + most_choices)),
          group(row + most_choices),
          barriers(reinterpret_cast<uint64_t*>(smem + barriers_at)) {
      if constexpr (shares_ring) ring = Team::ring(smem), barriers = Team::barriers(smem);
    }
  };
  static_assert(most_choices * (sizeof(Choice) + 12) <= S.scratch_bytes);

  /// Whether what the launch before publishes may be read before it ends.
  static constexpr bool may_be_published = C.ids == DType::i32 && C.offsets == DType::i32;
  /// An index that the launch before may have stored while this one began.
  template <class T>
  static CERMET_DEVICE int64_t load_index(const T* from) {
    if constexpr (may_be_published) return ptx::load_l2(from);
    else return *from;
  }
  static CERMET_DEVICE int row_of(const Params& p, int choice) {
    const int64_t row = load_index(static_cast<const Element<C.ids>*>(p.row_of_choice) + choice);
    return row >= 0 && row < p.rows ? static_cast<int>(row) : -1;
  }
  /// The experts of `Count` rows, -1 where there is none. All lanes of a warp call.
  template <int Count>
  static CERMET_DEVICE void find_groups(const Params& p, const int (&row)[Count], int (&group)[Count]) {
    const auto* const offsets = static_cast<const Element<C.offsets>*>(p.offsets);
#pragma unroll
    for (int j = 0; j < Count; ++j) group[j] = -1;
#pragma unroll 4
    for (int e = static_cast<int>(lane_index()); e < p.groups; e += 32) {
      const int64_t begin = load_index(offsets + e), end = load_index(offsets + e + 1);
#pragma unroll
      for (int j = 0; j < Count; ++j)
        if (row[j] >= begin && row[j] < end) group[j] = e;
    }
#pragma unroll
    for (int j = 0; j < Count; ++j) group[j] = __reduce_max_sync(0xffffffffu, group[j]);
  }

  static CERMET_DEVICE int begin_of(const Params& p, uint32_t item) {
    return static_cast<int>(share_begin(p.share, p.remainder, p.inverse, item));
  }

  /// Columns of an item whose weights are loaded before the wait: as many as the stages hold.
  static CERMET_DEVICE int prefetched_columns(const Params& p) { return p.published != 0 ? S.rows * S.stages : 0; }
  /// Producer, before the wait, where the choices are published.
  static CERMET_DEVICE void prefetch(const Params& p, uint32_t item, const Memory& memory, PipelineState& at) {
    int row[C.choices], group[C.choices];
#pragma unroll
    for (int j = 0; j < C.choices; ++j) row[j] = row_of(p, j);
    find_groups(p, row, group);
#pragma unroll
    for (int j = 0; j < C.choices; ++j) memory.row[j] = row[j], memory.group[j] = group[j];
    __syncwarp();
    const int begin = begin_of(p, item), end = begin_of(p, item + 1);
    produce_columns(p, begin, min_of(end, begin + prefetched_columns(p)), group, memory, at);
  }
  /// Producer: the remaining columns of an item.
  static CERMET_DEVICE void produce(const Params& p, uint32_t item, const Memory& memory, PipelineState& at) {
    int group[C.choices];
    if (p.published != 0) {
#pragma unroll
      for (int j = 0; j < C.choices; ++j) group[j] = memory.group[j];
    } else {
      int row[C.choices];
#pragma unroll
      for (int j = 0; j < C.choices; ++j) row[j] = row_of(p, j);
      find_groups(p, row, group);
    }
    produce_columns(p, begin_of(p, item) + prefetched_columns(p), begin_of(p, item + 1), group, memory, at);
  }
  /// Rows [begin, end) of every choice's weight. A choice that does not exist is given the first expert's.
  static CERMET_DEVICE void produce_columns(const Params& p, int begin, int end, const int (&group)[C.choices],
                                            const Memory& memory, PipelineState& at) {
    WeightPipeline pipeline(memory.ring, memory.barriers, at);
    const uint64_t policy = ptx::evict_first_policy();
    const int64_t stride = p.w_stride * element;
    const bool aligned = ((reinterpret_cast<uintptr_t>(p.w) | static_cast<uintptr_t>(stride) |
                           static_cast<uintptr_t>(p.w_group_stride * element)) &
                          15) == 0;
#pragma unroll 1
    for (int first = begin; first < end; first += S.rows) {
      const int rows = min_of(S.rows, end - first);
      char* const stage = pipeline.next();  // [choices][rows][row_bytes]
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
          copy_elements<element>(to, S.row_bytes, from, stride, rows, S.row_bytes);
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
  /// quantized here. a: of the warp among the split_k of its expert.
  static CERMET_DEVICE float load(const Params& p, int row, int a, Row& own, const Memory& memory) {
    using X = Element<C.x>;
    const X* const x = static_cast<const X*>(p.x) + row * p.x_stride;
    const auto first_of = [a](int j) { return ((j * S.split_k + a) * 32 + static_cast<int>(lane_index())) * count; };
    if constexpr (C.prologue.quantize) {
      constexpr QuantizedFormat format{.dtype = C.prologue.quantized, .wide = C.prologue.wide};
      float numbers[S.warp_pieces][count];
#pragma unroll
      for (int j = 0; j < S.warp_pieces; ++j) load_floats(x, first_of(j), C.k, numbers[j]);
      float largest = lanes_reduce<Magnitude, 32>(largest_magnitude(numbers));
      if constexpr (S.split_k > 1) {
        const int warp = static_cast<int>(Team::warp());
        if (lane_index() == 0) memory.largest[warp] = largest;
        Team::sync_part(0, 32 * S.warps());
#pragma unroll
        for (int i = 0; i < S.split_k; ++i)
          largest = Magnitude::combine(largest, memory.largest[warp / S.split_k * S.split_k + i]);
      }
      return quantize_numbers<format, true>(
          numbers, largest, [&](int j, const auto& quantized) { keep_quantized<format.dtype>(quantized, own.v[j]); });
    } else if constexpr (integer<C.w>) {
#pragma unroll
      for (int j = 0; j < S.warp_pieces; ++j)
        own.v[j] = load_piece<int8_t>(reinterpret_cast<const char*>(x), first_of(j), C.k);
      return 1.0f;
    } else {
#pragma unroll
      for (int j = 0; j < S.warp_pieces; ++j) load_floats(x, first_of(j), C.k, own.v[j]);
      return 1.0f;
    }
  }

  /// Combines the partials of `rows` columns from `column` on, adds up the choices and stores them.
  static CERMET_DEVICE void finish_batch(const Params& p, int column, int rows, int end, const S32* partial,
                                         const Memory& memory, Factors& factors) {
    Team::sync_part(0, 32 * S.warps());
    const int thread = static_cast<int>(Team::rank()), r = thread / most_choices, q = thread % most_choices;
    if (thread >= batch * most_choices) return;
    const int choice = min_of(q / S.split_k, C.choices - 1);
    S32 sum = q < S.warps() ? partial[r * most_choices + q] : S32{};
#pragma unroll
    for (int width = S.split_k / 2; width > 0; width /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, width);
    float value;
    if constexpr (C.prologue.quantize)
      value = static_cast<float>(E::value(sum, memory.choice[choice].row_scale, factors));
    else value = static_cast<float>(E::value(sum, factors));
    if constexpr (C.tail)
      if (memory.choice[choice].group < 0) value = 0;
    float total = 0;
    const int first = static_cast<int>(lane_index()) / most_choices * most_choices;
#pragma unroll
    for (int j = 0; j < C.choices; ++j)
      total = fmaf(memory.choice[j].weight, __shfl_sync(0xffffffffu, value, first + j * S.split_k), total);
    using Out = Element<E::out>;
    if (q == 0 && r < rows) static_cast<Out*>(p.y)[column + r] = epilogue::rounded<Out>(total);
    if (column + batch + r < end)
      epilogue::load_place<E>(p.extra, memory.choice[choice].row, column + batch + r, group_of(memory.choice[choice]),
                              factors);
  }

  static CERMET_DEVICE void consume(const Params& p, uint32_t item, const Memory& memory, int& buffer,
                                    PipelineState& at) {
    WeightPipeline pipeline(memory.ring, memory.barriers, at);
    const int warp = static_cast<int>(Team::warp()), lane = static_cast<int>(lane_index()), own = warp / S.split_k,
              a = warp % S.split_k;
    const int begin = begin_of(p, item), end = begin_of(p, item + 1), columns = end - begin;
    const int row[1] = {p.published != 0 ? memory.row[own] : row_of(p, own)};
    int group[1];
    const float weight = p.weights[own];
    if (p.published != 0) group[0] = memory.group[own];
    else find_groups(p, row, group);
    Row x;  // [warp_pieces][elements of a lane]
    const float row_scale = load(p, max_of(row[0], 0), a, x, memory);
    bool in_tail = false;
    if constexpr (C.tail)
      in_tail = row[0] >= 0 && row[0] >= static_cast<const Element<C.offsets>*>(p.offsets)[p.groups];
    if (lane == 0 && a == 0)
      memory.choice[own] = {max_of(row[0], 0), in_tail ? -1 : max_of(group[0], 0),
                            group[0] < 0 && !in_tail ? quiet_nan() : weight, row_scale};
    Team::sync_part(0, 32 * S.warps());
    Factors factors;
    const int thread = static_cast<int>(Team::rank());
    if (thread < batch * most_choices) {
      const Choice& choice = memory.choice[min_of(thread % most_choices / S.split_k, C.choices - 1)];
      epilogue::load_row<E>(p.extra, choice.row, group_of(choice), factors);
      epilogue::load_place<E>(p.extra, choice.row, min_of(begin + thread / most_choices, p.columns - 1),
                              group_of(choice), factors);
    }
#pragma unroll 1
    for (int first = 0; first < columns; first += S.rows) {
      S32* const partial = memory.partial + buffer * batch * most_choices;  // [batch][most_choices]
      S32 value[S.rows], other[S.rows];
#pragma unroll
      for (int r = 0; r < S.rows; ++r) value[r] = other[r] = 0;
      const char* const stage = pipeline.wait() + own * S.rows * S.row_bytes + (a * 32 + lane) * 16;
#pragma unroll
      for (int j = 0; j < S.warp_pieces; ++j) {
        if (S.row_bytes % (piece_bytes * S.split_k) != 0 && ((j * S.split_k + a) * 32 + lane) * 16 >= S.row_bytes)
          continue;
#pragma unroll
        for (int r = 0; r < S.rows; ++r)
          Arithmetic::multiply(*reinterpret_cast<const Piece*>(stage + r * S.row_bytes + j * S.split_k * piece_bytes),
                               x.v[j], value[r], other[r]);
      }
      pipeline.release();
      if constexpr (!integer<C.w>)
#pragma unroll
        for (int r = 0; r < S.rows; ++r) value[r] += other[r];
      const S32 sum = Arithmetic::reduce(value);
      if (lane % (32 / S.rows) == 0) partial[(first + lane / (32 / S.rows)) % batch * most_choices + warp] = sum;
      const int batch_first = first / batch * batch;
      if (first + S.rows == batch_first + batch || first + S.rows >= columns) {
        finish_batch(p, begin + batch_first, min_of(batch, columns - batch_first), end, partial, memory, factors);
        buffer ^= 1;
      }
    }
    at = pipeline.state();
    Team::sync_part(0, 32 * S.warps());  // the next item overwrites the choices
  }
};

#endif

template <CombineConfig C, class E>
struct Combine {
  using Params = gemv::Params;
  static constexpr Overlap overlap = Overlap::late;

  struct Ring {
    int buffer = 0;
    PipelineState at;
    bool is_open = false;

    template <class Team>
    CERMET_DEVICE Ring(const Params&, Team team, char* smem) {
#if CERMET_ARCH >= 900
      using Body = CombineBody<C, E, Team>;
      if (team.warp() == Body::S.warps()) init_ring<Body>(smem, at);
#endif
    }
    template <class Team>
    CERMET_DEVICE void close(const Params&, [[maybe_unused]] Team team, [[maybe_unused]] char* smem) {
#if CERMET_ARCH >= 900
      end_ring<CombineBody<C, E, Team>>(team, smem);
#endif
    }
  };

  template <class Team>
  static CERMET_DEVICE void fetch(const Params& p, [[maybe_unused]] uint32_t item, Team team,
                                  [[maybe_unused]] char* smem, Ring& ring) {
    constexpr int unused = static_cast<int>((epilogue::most_extras - E::extras) * sizeof(epilogue::Operand));
#if CERMET_ARCH >= 900
    using Body = CombineBody<C, E, Team>;
    if (p.published != 0 && team.warp() == Body::S.warps())
      Body::prefetch(p, item, typename Body::Memory(smem), ring.at);
#endif
    if (ring.is_open) return;
    touch_parameters<0, sizeof(Params) - unused>(p);
    team.sync();
    ring.is_open = true;
  }

  template <class Team>
  static CERMET_DEVICE void compute(const Params& p, uint32_t item, Team team, char* smem, Ring& ring) {
#if CERMET_ARCH >= 900
    using Body = CombineBody<C, E, Team>;
    const typename Body::Memory memory(smem);
    if (team.warp() == Body::S.warps()) Body::produce(p, item, memory, ring.at);
    else Body::consume(p, item, memory, ring.buffer, ring.at);
#endif
  }

#if CERMET_ARCH >= 900
  /// The same in a walk: see Gemv.
  static constexpr bool shares_ring = true;
  template <class Team>
  static CERMET_DEVICE bool starts_early(const Params&, Team) {
    return false;
  }
  template <class Team>
  static CERMET_DEVICE void prepare(const Params&, uint32_t, Team) {}
  template <class Team>
  static CERMET_DEVICE void feed(const Params& p, uint32_t item, Team, char* smem, StreamState& at) {
    using Body = CombineBody<C, E, Team>;
    Body::produce(p, item, typename Body::Memory(smem), at.stages);
  }
  template <class Team>
  static CERMET_DEVICE void multiply(const Params& p, uint32_t item, Team, char* smem, StreamState& at) {
    using Body = CombineBody<C, E, Team>;
    Body::consume(p, item, typename Body::Memory(smem), at.buffer, at.stages);
  }
#endif
};

}  // namespace cermet::gemv
