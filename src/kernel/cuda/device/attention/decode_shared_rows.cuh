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

/// Combines the partials of a span that the items first .. last hold, four elements of a row after the other.
template <DecodeConfig C, class Team, class Partial>
CERMET_DEVICE void combine_rows(const Params& p, const WorkUnit& span, int first, int last, Partial&& partial) {
  constexpr int quads = C.value_size / 4;
#pragma unroll 1
  for (int i = static_cast<int>(Team::rank()); i < span.tile.rows * quads; i += Team::size) {
    const int r = i / quads, d = i % quads * 4;
    write_row<C>(p, span.tile, span.head, r, d, add_partials<C.rows, C.value_size, Team>(first, last, r, d, partial));
  }
}

}  // namespace cermet::attention
