// Weights on their way through shared memory: one warp fills stages, the others empty them (sm_90 on).
#pragma once

#include "kernel/cuda/device/gemv/vectors.cuh"
#include "kernel/cuda/device/ptx/bulk_copy.cuh"
#include "kernel/cuda/device/ptx/mbarrier.cuh"
#include "kernel/cuda/device/team.cuh"

namespace cermet::gemv {

struct PipelineShape {
  int rows, chunk;        ///< of a stage: rows, and bytes of each
  int chunks, row_bytes;  ///< of a row; the last chunk may be short
  int stages, stage_bytes, matrices, consumers, element;
  int in_flight = 0;  ///< stages at most whose bytes are on their way; 0: all
};

/// Where a warp is in the ring of stages; it lives on from item to item.
struct PipelineState {
  int stage = 0;
  uint32_t parity = 0;
};

#if CERMET_ARCH >= 900
/// Rows [first, end) of one or two weights.
struct WeightRows {
  const char* matrix[2];
  int64_t stride[2];  ///< bytes from row to row
  int first = 0, end = 0;
};

/// Stages hold, in this order: for each group of `rows` rows, for each matrix, each chunk.
template <PipelineShape S>
struct Pipeline {
  char* data;
  uint64_t *full, *empty;
  int stage;
  uint32_t parity;

  CERMET_DEVICE Pipeline(char* memory, uint64_t* barriers, const PipelineState& state)
      : data(memory), full(barriers), empty(barriers + S.stages), stage(state.stage), parity(state.parity) {}
  CERMET_DEVICE PipelineState state() const { return {stage, parity}; }

  static CERMET_DEVICE int steps(const WeightRows& w) {
    return (w.end - w.first + S.rows - 1) / S.rows * S.matrices * S.chunks;
  }
  static CERMET_DEVICE int pair_steps(const WeightRows& w) {
    return PairStages{S.rows}.rows_of(w.end - w.first) / S.rows * S.chunks;
  }

  /// By one thread, before a barrier of all.
  CERMET_DEVICE void init() const {
#pragma unroll
    for (int s = 0; s < S.stages; ++s) {
      ptx::mbarrier_init(&full[s], 1);
      ptx::mbarrier_init(&empty[s], S.consumers);
    }
    ptx::fence_mbarrier_init();
  }

  CERMET_DEVICE void advance() {
    if (++stage == S.stages) stage = 0, parity ^= 1;
  }

  /// By the filling warp, before the next stage: until that is empty, and bytes of earlier ones have come. What is on
  /// its way beyond what the memory needs to be busy only makes the queue longer, in which all other accesses wait,
  /// too.
  CERMET_DEVICE void wait_for_room() {
    ptx::mbarrier_wait(&empty[stage], parity ^ 1);
    if constexpr (S.in_flight > 0 && S.in_flight < S.stages) {
      const bool wraps = stage < S.in_flight;
      ptx::mbarrier_wait(&full[wraps ? stage + S.stages - S.in_flight : stage - S.in_flight],
                         wraps ? parity ^ 1 : parity);
    }
  }

  /// By the whole filling warp: step `index` of `w` into the next stage, once that is empty.
  CERMET_DEVICE void fill(const WeightRows& w, int index, uint64_t policy) {
    const int chunk = S.chunks == 1 ? 0 : index % S.chunks, rest = S.chunks == 1 ? index : index / S.chunks;
    const int matrix = S.matrices == 1 ? 0 : rest % S.matrices, row = w.first + rest / S.matrices * S.rows;
    const int rows = min_of(S.rows, w.end - row), bytes = min_of(S.chunk, S.row_bytes - chunk * S.chunk);
    const int64_t stride = w.stride[matrix];
    const char* const from = w.matrix[matrix] + row * stride + chunk * S.chunk;
    char* const to = data + stage * S.stage_bytes;
    wait_for_room();
    if (((reinterpret_cast<uintptr_t>(from) | static_cast<uintptr_t>(stride)) & 15) == 0) {
      if (ptx::elect_one()) {
        ptx::mbarrier_arrive_expect(&full[stage], static_cast<uint32_t>(rows * bytes));
        if (S.chunks == 1 && stride == S.row_bytes) {
          ptx::bulk_copy(to, from, rows * bytes, &full[stage], policy);
        } else {
#pragma unroll 1
          for (int r = 0; r < rows; ++r)
            ptx::bulk_copy(to + r * S.chunk, from + r * stride, bytes, &full[stage], policy);
        }
      }
    } else {
      fill_elements(to, from, stride, rows, bytes);
      __syncwarp();
      if (lane_index() == 0) ptx::mbarrier_arrive(&full[stage]);
    }
    advance();
  }

  /// The same for pairs of rows, which `Order` finds and PairStages lays out.
  template <class Order>
  CERMET_DEVICE void fill_pairs(const WeightRows& w, int index, uint64_t policy) {
    constexpr PairStages stages{S.rows};
    constexpr int pairs = stages.pairs(), halves = S.rows == 1 ? 1 : 2;
    const int chunk = S.chunks == 1 ? 0 : index % S.chunks, row = (S.chunks == 1 ? index : index / S.chunks) * S.rows;
    const int pair = w.first + stages.pair_of(row), count = min_of(pairs, w.end - pair),
              bytes = min_of(S.chunk, S.row_bytes - chunk * S.chunk);
    const int64_t stride = w.stride[0];
    const char* const from = w.matrix[0] + chunk * S.chunk;
    char* const to = data + stage * S.stage_bytes;
    wait_for_room();
    const auto copy = [&](auto&& copy_rows) {
#pragma unroll
      for (int half = 0; half < halves; ++half) {
        const int second = halves == 2 ? half : stages.second_of(row), first = Order::column(pair, second);
        char* const part = to + half * pairs * S.chunk;
        if (S.chunks == 1 && Order::column(pair + count - 1, second) == first + count - 1) {
          copy_rows(part, from + first * stride, count);
        } else {
#pragma unroll 1
          for (int r = 0; r < count; ++r)
            copy_rows(part + r * S.chunk, from + Order::column(pair + r, second) * stride, 1);
        }
      }
    };
    if (((reinterpret_cast<uintptr_t>(from) | static_cast<uintptr_t>(stride)) & 15) == 0) {
      if (ptx::elect_one()) {
        ptx::mbarrier_arrive_expect(&full[stage], static_cast<uint32_t>(halves * count * bytes));
        copy([&](char* part, const char* rows, int length) {
          if (length > 1 && stride != S.row_bytes) {
#pragma unroll 1
            for (int r = 0; r < length; ++r)
              ptx::bulk_copy(part + r * S.chunk, rows + r * stride, bytes, &full[stage], policy);
          } else {
            ptx::bulk_copy(part, rows, length * bytes, &full[stage], policy);
          }
        });
      }
    } else {
      copy([&](char* part, const char* rows, int length) { fill_elements(part, rows, stride, length, bytes); });
      __syncwarp();
      if (lane_index() == 0) ptx::mbarrier_arrive(&full[stage]);
    }
    advance();
  }

  /// For rows that are not 16-byte aligned.
  static CERMET_DEVICE void fill_elements(char* to, const char* from, int64_t stride, int rows, int bytes) {
    using Unit = Unsigned<S.element>;
#pragma unroll 1
    for (int r = 0; r < rows; ++r)
#pragma unroll 4
      for (int i = static_cast<int>(lane_index()); i < bytes / S.element; i += 32)
        reinterpret_cast<Unit*>(to + r * S.chunk)[i] = reinterpret_cast<const Unit*>(from + r * stride)[i];
  }

  /// By every multiplying warp: the next stage once it is full, and done with it.
  CERMET_DEVICE const char* wait() const {
    ptx::mbarrier_wait(&full[stage], parity);
    return data + stage * S.stage_bytes;
  }
  CERMET_DEVICE void release() {
    __syncwarp();
    if (lane_index() == 0) ptx::mbarrier_arrive(&empty[stage]);
    advance();
  }
};

/// Sets up the barriers of a body's ring: by the warp that fills it, before a barrier of all.
template <class Body>
CERMET_DEVICE void init_ring(char* smem, const PipelineState& at) {
  const typename Body::Place place(smem);
  if (lane_index() == 0) typename Body::WeightPipeline(place.ring, place.barriers, at).init();
  __syncwarp();
}
/// Ends them, behind a block's last item.
template <class Body, class Team>
CERMET_DEVICE void end_ring(Team team, char* smem) {
  ptx::end_barriers(team, typename Body::Place(smem).barriers, 2 * Body::pipeline_shape.stages);
}

#endif

}  // namespace cermet::gemv
