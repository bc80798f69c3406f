// Epilogue and combine of decoding attention whose warps have different rows, or different columns: each warp writes
// its own.
#pragma once

#include "kernel/cuda/device/attention/decode_epilogue.cuh"

namespace cermet::attention {

/// Calls sink(r, d, output) for every four of `Columns` outputs of a warp's `rows` rows, which pass through `memory`,
/// `Bytes` of shared memory that are the warp's own: what a lane then has does not depend on the products' layout.
template <class Mma, int Columns, int Bytes, class Sink>
CERMET_DEVICE void rows_through_shared(const typename Mma::State& state, int rows, float* memory, Sink&& sink) {
  constexpr int row = Bytes / decode_warp_rows / 4, least = Columns % 32 == 0 ? 32 : 16,
                pass = row >= Columns                            ? Columns
                       : row >= Columns / 2 && Columns % 64 == 0 ? Columns / 2
                                                                 : least;  // columns at a time
  static_assert(pass <= row && Columns % pass == 0);
  const int lane = static_cast<int>(lane_index());
  // Where a row's column group of 8 lies, so that four neighbouring rows use different banks.
  const auto swizzle = [](int r) { return pass % 32 == 0 ? r % 4 * 8 : 0; };
#pragma unroll
  for (int first = 0; first < Columns; first += pass) {
#pragma unroll
    for (int h = 0; h < 2; ++h)
#pragma unroll
      for (int n = first / 8; n < (first + pass) / 8; ++n) {
        const int r = lane / 4 + 8 * h;
        Mma::store_outputs(state, n, h, [&](int d) { return memory + r * pass + ((d - first) ^ swizzle(r)); });
      }
    __syncwarp();
#pragma unroll 1
    for (int i = lane; i < rows * (pass / 4); i += 32) {
      const int r = i / (pass / 4), d = i % (pass / 4) * 4;
      sink(r, first + d, *reinterpret_cast<const Vector<float, 4>*>(memory + r * pass + (d ^ swizzle(r))));
    }
    __syncwarp();
  }
}

/// Combines the partials of a span that the items first .. last hold, four elements of a row after the other.
template <DecodeConfig C, class Team, class Partial>
CERMET_DEVICE void combine_rows(const Params& p, const WorkUnit& span, int first, int last, Partial&& partial) {
  using SpanPartials = Partials<C.rows, C.value_size, Team>;
  constexpr int quads = C.value_size / 4, at_once = 8;
#pragma unroll 1
  for (int i = static_cast<int>(Team::rank()); i < span.tile.rows * quads; i += Team::size) {
    const int r = i / quads, d = i % quads * 4;
    PartialRow total;
#pragma unroll 1
    for (int from = first; from <= last; from += at_once) {
      float maximum[at_once], sum[at_once];
      float4 output[at_once];
#pragma unroll
      for (int k = 0; k < at_once; ++k) {
        float* other = partial(min_of(from + k, last));
        maximum[k] = __ldcg(other + r);
        sum[k] = __ldcg(other + C.rows + r);
        output[k] = __ldcg(reinterpret_cast<const float4*>(SpanPartials::output(other, r, d)));
      }
      float top = total.maximum;
#pragma unroll
      for (int k = 0; k < at_once; ++k) top = fmaxf(top, maximum[k]);
      total.rescale(top);
#pragma unroll
      for (int k = 0; k < at_once; ++k)
        if (from + k <= last) total.add(maximum[k], sum[k], {output[k].x, output[k].y, output[k].z, output[k].w}, top);
    }
    write_row<C>(p, span.tile, span.head, r, d, total);
  }
}

}  // namespace cermet::attention
