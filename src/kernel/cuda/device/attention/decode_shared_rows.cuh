// Epilogue and combine of decoding attention whose warps have different rows, or different columns: each warp writes
// its own.
#pragma once

#include "kernel/cuda/device/attention/decode_epilogue.cuh"

namespace cermet::attention {

/// How `Columns` outputs of a warp's 16 rows pass through `Bytes` of shared memory, some columns at a time: afterwards
/// what a lane has of a row does not depend on the layout of products.
template <class Mma, int Columns, int Bytes>
struct OutputPasses {
  static constexpr int row = Bytes / decode_warp_rows / 4, half = Columns / 2,
                       least = Columns % 32 == 0 && row >= 32 ? 32 : 16,
                       columns = row >= Columns                  ? Columns
                                 : row >= half && half % 32 == 0 ? half
                                                                 : least;  // of a pass
  static_assert(columns <= row && Columns % columns == 0);

  /// Where a row's column is; four neighbouring rows use different banks.
  static CERMET_DEVICE int place(int r, int d) { return r * columns + (d ^ (columns % 32 == 0 ? r % 4 * 8 : 0)); }
  /// Columns `first` and on.
  static CERMET_DEVICE void store(const typename Mma::State& state, int first, float* memory) {
#pragma unroll
    for (int h = 0; h < 2; ++h)
#pragma unroll
      for (int n = first / 8; n < (first + columns) / 8; ++n)
        Mma::store_outputs(
            state, n, h, [&](int d) { return memory + place(static_cast<int>(lane_index()) / 4 + 8 * h, d - first); });
  }
  static CERMET_DEVICE Vector<float, 4> load(const float* memory, int r, int d) {
    return *reinterpret_cast<const Vector<float, 4>*>(memory + place(r, d));
  }
};

/// The items first .. last hold partials of a span: number 1 the first one, where its share begins in another span.
struct SpanItems {
  int first, last, first_number;
  CERMET_DEVICE int number(int item) const { return item == first ? first_number : 0; }
};

/// The scratch of a launch whose items run at the same time: every item of a span waits for all partials and adds up a
/// part of the elements, and the last one clears the flags when all have read. The flags are two for each item, before
/// the partials and after them.
template <DecodeConfig C, class Team>
struct SharedPartials {
  static constexpr uint64_t partial_is_read = ~partial_is_complete;
  Partials<C.rows, C.value_size, Team> layout;

  CERMET_DEVICE uint64_t* complete(int item, int number) const {
    return static_cast<uint64_t*>(layout.scratch) + number * layout.blocks + item;
  }
  CERMET_DEVICE uint64_t* read(int item, int number) const {
    char* after = static_cast<char*>(layout.scratch) + decode_scratch_bytes(layout.blocks, C.rows, C.value_size);
    return reinterpret_cast<uint64_t*>(after) + number * layout.blocks + item;
  }
  /// After a barrier that follows the writes of all threads.
  CERMET_DEVICE void publish(int item, int number) const {
    if constexpr (!Team::together) layout.publish(item, number);
    else if (Team::rank() == 0) ptx::store_release(complete(item, number), partial_is_complete);
  }
  CERMET_DEVICE void wait(const SpanItems& items) const {
    for (int i = items.first + static_cast<int>(Team::rank()); i <= items.last; i += Team::size)
      while (ptx::load_acquire(complete(i, items.number(i))) != partial_is_complete) {
      }
    Team::sync();
  }
  CERMET_DEVICE void finish_reading(const SpanItems& items, int item) const {
    Team::sync();
    if (Team::rank() == 0) ptx::store_release(read(item, items.number(item)), partial_is_read);
  }
  CERMET_DEVICE void clear(const SpanItems& items) const {
    for (int i = items.first + static_cast<int>(Team::rank()); i <= items.last; i += Team::size) {
      uint64_t* flag = read(i, items.number(i));
      while (ptx::load_acquire(flag) != partial_is_read) {
      }
      *flag = *complete(i, items.number(i)) = 0;
    }
  }
};

/// Adds up partials of `Quads` groups of four elements of a thread, `AtOnce` partials at a time, and writes them:
/// groups first, first + step, .. of the span's.
template <DecodeConfig C, class Team, int Quads, int AtOnce>
CERMET_DEVICE void combine_quads(const Params& p, const WorkUnit& span, const SharedPartials<C, Team>& partials,
                                 const SpanItems& items, int first, int step) {
  using Layout = Partials<C.rows, C.value_size, Team>;
  constexpr int quads = C.value_size / 4;
  const int count = span.tile.rows * quads;
#pragma unroll 1
  for (int begin = first; begin < count; begin += Quads * step) {
    PartialRow total[Quads];
#pragma unroll 1
    for (int from = items.first; from <= items.last; from += AtOnce) {
      float maximum[Quads][AtOnce], sum[Quads][AtOnce];
      float4 output[Quads][AtOnce];
#pragma unroll
      for (int k = 0; k < AtOnce; ++k) {
        const int item = min_of(from + k, items.last);
        float* partial = partials.layout.partial(item, items.number(item));
#pragma unroll
        for (int q = 0; q < Quads; ++q) {
          const int i = min_of(begin + q * step, count - 1), r = i / quads, d = i % quads * 4;
          maximum[q][k] = __ldcg(partial + r);
          sum[q][k] = __ldcg(partial + C.rows + r);
          output[q][k] = __ldcg(reinterpret_cast<const float4*>(Layout::output(partial, r, d)));
        }
      }
#pragma unroll
      for (int q = 0; q < Quads; ++q) {
        float top = total[q].maximum;
#pragma unroll
        for (int k = 0; k < AtOnce; ++k) top = fmaxf(top, maximum[q][k]);
        total[q].rescale(top);
#pragma unroll
        for (int k = 0; k < AtOnce; ++k) {
          const float4& x = output[q][k];
          if (from + k <= items.last) total[q].add(maximum[q][k], sum[q][k], {x.x, x.y, x.z, x.w}, top);
        }
      }
    }
#pragma unroll
    for (int q = 0; q < Quads; ++q) {
      const int i = begin + q * step;
      if (i < count) write_row<C>(p, span.tile, span.head, i / quads, i % quads * 4, total[q]);
    }
  }
}

/// Combines part `part` of `parts` of a span's elements. Two partials are the rule where there are many spans; then
/// many groups are a thread's, and loaded together.
template <DecodeConfig C, class Team>
CERMET_DEVICE void combine_rows(const Params& p, const WorkUnit& span, const SharedPartials<C, Team>& partials,
                                const SpanItems& items, int part, int parts) {
  const int first = part * Team::size + static_cast<int>(Team::rank()), step = parts * Team::size;
  if (items.last - items.first < 2) combine_quads<C, Team, 4, 2>(p, span, partials, items, first, step);
  else combine_quads<C, Team, 1, 8>(p, span, partials, items, first, step);
}

}  // namespace cermet::attention
