// cumsum along an axis that is not the last one, for few lines and a long axis:
// y[r, l] = x[0, l] + .. + x[r, l] for every line l; `exclusive` leaves x[r, l] out, `reverse` counts r from the end.
//
//   Tiles      An item is `width` neighbouring lines and all rows: those of a 32-byte sector (8 of f32, 16 of bf16),
//              so that 1,024 lines are 128 items; 32 where these fill the device, too. A step is slots * rows rows; a
//              slot is `rows` (16; of int64 8) that follow each other.
//   Threads    512, a line of a slot each: rank = slot * width + line. 64 slots for 8 lines: a step of 1,024 rows.
//   Shared     0       totals  [slots][width] of Number: sums of slots, then of all that comes before them.
//   memory             512 * 4 bytes (floating), 8 (int32) or 16 (int64)
//   Phases     load    the rows of the thread's slot in the next step, into registers
//              sum     of the slot in this step, to totals
//              fold    the first `width` threads add up a line's totals in order, from the sum of earlier steps on
//              store   what the fold left in totals, plus the slot's rows one by one
//              There is a barrier before and one after the fold. Only the fold touches totals of other threads, so
//              none is needed between steps or items.
//   Order      (((slot 0) + slot 1) + ..) + the rows of its own slot: fixed by the length and the type, whatever the
//              width of a tile. Nothing is subtracted, so an infinity or NaN shows only in the sums that include it.
//   In place   An element is read and written by one thread, in that order.
//   Memory     Each element is read once and written once: 33.6 MB for f32[4096, 1024], 10.0 us at 3.35 TB/s (H100).
//              Loads in flight: 512 * 16 elements on each of 128 SMs, 4 MiB, where 2 to 3 hide the latency of memory.
//   Predicted  16 us: 13 us at the 2.6 TB/s of a copy, the latency of the first loads, and 4 folds of 0.4 us, which
//              loads hide in part.
//   Measured   16.6 us (2.0 TB/s) on an H100, 2026-11-28; 441 us with a thread for each line (scan.cuh). For
//              f32[65536, 64]: 129 us, and 6.24 ms (bench/results/h100/compare/kernel-form.txt).
#pragma once

#include "kernel/cuda/device/reduce/cumsum_tiled.hpp"
#include "kernel/cuda/device/reduce/scan.cuh"

namespace cermet::cumsum_tiled {

template <Config C>
struct Task {
  using Params = cumsum_tiled::Params;
  using T = Element<C.type>;
  using Number = typename scan::SumOf<T>::type;
  static constexpr int width = C.width, slots = threads / width, rows = slot_rows(sizeof(T)), step = slots * rows;
  static_assert(threads % width == 0 && width <= 32);

  /// Rows from `at` on, `stride` elements apart, of which those below `length` are there; 0 for the others.
  static CERMET_DEVICE void load(T (&own)[rows], const T* x, int64_t stride, int64_t at, int64_t length) {
    const T* const from = x + at * stride;
#pragma unroll
    for (int i = 0; i < rows; ++i) own[i] = at + i < length ? from[i * stride] : T{};
  }

  /// Replaces a line's totals by the sum of `before` and all totals before each; returns that of all.
  static CERMET_DEVICE Number fold(Number* totals, Number before) {
    constexpr int ahead = 64 / sizeof(Number);  // loads in flight
    static_assert(slots % ahead == 0);
#pragma unroll 1
    for (int slot = 0; slot < slots; slot += ahead) {
      Number part[ahead];
#pragma unroll
      for (int i = 0; i < ahead; ++i) part[i] = totals[(slot + i) * width];
#pragma unroll
      for (int i = 0; i < ahead; ++i) {
        totals[(slot + i) * width] = before;
        before = before + part[i];
      }
    }
    return before;
  }

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char* smem) {
    static_assert(Team::size == threads);
    Number* const totals = reinterpret_cast<Number*>(smem);  // [slots][width]
    const int rank = static_cast<int>(team.rank()), slot = rank / width;
    const int64_t line = static_cast<int64_t>(item) * width + rank % width;
    const bool is_inside = line < p.lines.count;  // threads of lines beyond the last take part in barriers
    const int64_t length = is_inside ? p.length : 0;
    int64_t offset[2] = {0, 0};
    if (is_inside) offsets_at(p.lines, line, offset);
    const int64_t first = p.reverse ? p.length - 1 : 0, sign = p.reverse ? -1 : 1;
    const int64_t x_stride = sign * p.x_stride, y_stride = sign * p.y_stride;
    const T* const x = static_cast<const T*>(p.x) + offset[0] + first * p.x_stride;
    T* const y = static_cast<T*>(p.y) + offset[1] + first * p.y_stride;

    T own[rows], next[rows];
    load(own, x, x_stride, slot * rows, length);
    Number carry;  // of a line's earlier steps, in the threads that fold
#pragma unroll 1
    for (int64_t begin = 0; begin < p.length; begin += step) {
      const int64_t at = begin + slot * rows;
      load(next, x, x_stride, at + step, length);
      Number sum;
#pragma unroll
      for (int i = 0; i < rows; ++i) sum = sum + Number::of(own[i]);
      totals[rank] = sum;
      team.sync();
      if (rank < width) carry = fold(totals + rank, carry);
      team.sync();
      sum = totals[rank];
      T* const to = y + at * y_stride;
#pragma unroll
      for (int i = 0; i < rows; ++i) {
        const T without = sum.template stored<C.wraps>();
        sum = sum + Number::of(own[i]);
        const T with = sum.template stored<C.wraps>();
        if (at + i < length) to[i * y_stride] = p.exclusive ? without : with;
        own[i] = next[i];
      }
    }
  }
};

}  // namespace cermet::cumsum_tiled
