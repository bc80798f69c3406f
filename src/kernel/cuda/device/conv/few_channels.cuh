// Convolutions over nhwc tensors of few channels on the tensor cores. A row of a window is a run of neighbouring
// elements of x. A block keeps the weight in shared memory, brings the pixels of a tile of 16 x 16 places there with
// wide copies, and reads the windows from there, two elements at a time.
#pragma once

#include "kernel/cuda/device/conv/few_channels.hpp"
#include "kernel/cuda/device/ptx/cp_async.cuh"
#include "kernel/cuda/device/ptx/ldmatrix.cuh"
#include "kernel/cuda/device/ptx/mma.cuh"
#include "kernel/cuda/device/team.cuh"
#include "kernel/cuda/device/tile/store.cuh"

namespace cermet::conv {

/// E: the epilogue, see tile/epilogue.cuh.
template <FewChannelsConfig C, class E>
struct FewChannels {
  using Params = FewChannelsParams;
  using T = Element<C.type>;
  static constexpr FewChannelsShape S = C.shape;
  static constexpr int unit = S.unit, places = S.places, tiles_n = S.outputs / 8, row_units = S.patch_row() / unit;
  static constexpr int lines = 2;  ///< of places of a warp
  static constexpr bool even = S.step() % 2 == 0;
  static_assert(sizeof(T) == 2 && S.outputs % 32 == 0 && S.weight_row() / unit % 2 == 1);

  /// Column n of the tile is row row_of(n) of the weight in shared memory: so the sums of a thread in four products of
  /// eight columns are of eight neighbours.
  static constexpr int row_of(int n) { return n / 32 * 32 + n % 8 / 2 * 8 + n % 32 / 8 * 2 + n % 2; }

  static CERMET_DEVICE T* weights(char* smem) { return reinterpret_cast<T*>(smem + S.patch_bytes()); }

  template <class Team>
  static CERMET_DEVICE void load_weights(const Params& p, int column, char* smem) {
    constexpr int length = S.steps() * 2 * unit;
    for (int i = static_cast<int>(Team::rank()); i < S.outputs * length; i += Team::size) {
      const int n = i / length, k = i % length, group = k / unit;
      const int tap_row = group / S.row_groups(), at = group % S.row_groups() * unit + k % unit - S.lead();
      T value{};
      if (tap_row < S.kernel_h && at >= 0 && at < S.run() && column + n < p.outputs)
        value = static_cast<const T*>(p.weight)[static_cast<int64_t>(column + n) * p.k + tap_row * S.run() + at];
      weights(smem)[row_of(n) * S.weight_row() + k] = value;
    }
  }

  /// The block's weights, which stay where they are from item to item.
  struct Ring {
    int column = 0;
    template <class Team>
    CERMET_DEVICE Ring(const Params& p, Team, char* smem) {
      load_weights<Team>(p, 0, smem);
    }
    template <class Team>
    CERMET_DEVICE void close(const Params&, Team, char*) {}
  };

  struct TileCoord {
    int sample, row, column, output;  ///< first ones of the tile
  };
  static CERMET_DEVICE TileCoord find(const Params& p, uint32_t item) {
    const uint32_t across = static_cast<uint32_t>(p.columns + places - 1) / places,
                   down = static_cast<uint32_t>(p.rows + places - 1) / places;
    const uint32_t line = item / across, sheet = line / down;
    const uint32_t samples = static_cast<uint32_t>(p.samples);
    return {static_cast<int>(sheet % samples), static_cast<int>(line % down) * places,
            static_cast<int>(item % across) * places, static_cast<int>(sheet / samples) * S.outputs};
  }

  /// Starts the copies of the tile's pixels; what is outside of x is zeros.
  template <class Team>
  static CERMET_DEVICE void load_patch(const Params& p, const TileCoord& coord, char* smem) {
    const T* const x = static_cast<const T*>(p.x) + coord.sample * p.x_batch;
    const int top = coord.row * S.stride_h - p.before_h,
              left = coord.column * S.step() - S.before_w * S.channels - S.first();
    const int length = p.width * S.channels;
    for (int i = static_cast<int>(Team::rank()); i < S.patch_rows() * row_units; i += Team::size) {
      const int h = top + i / row_units, at = left + i % row_units * unit;
      const int valid = static_cast<uint32_t>(h) < static_cast<uint32_t>(p.height) && at >= 0
                            ? min_of(max_of(length - at, 0), unit)
                            : 0;
      char* const to = smem + i * 16;
      if (p.rows_vectors) {
        ptx::cp_async<16>(to, valid > 0 ? static_cast<const void*>(x + h * p.x_row + at) : p.x, valid * 2);
      } else {
        T run[unit];
#pragma unroll
        for (int e = 0; e < unit; ++e) {
          const int pixel = (at + e) / S.channels;
          run[e] = e < valid ? x[h * p.x_row + pixel * p.x_column + (at + e - pixel * S.channels)] : T{};
        }
        epilogue::store_run(reinterpret_cast<T*>(to), run);
      }
    }
    ptx::cp_async_commit();
    ptx::cp_async_wait<0>();
  }

  /// Which of the elements 2t, 2t + 1 of a group that stands `at` elements after its run's first belong to the run:
  /// the others are neighbours' pixels.
  static CERMET_DEVICE uint32_t mask_of(int at) {
    const auto inside = [](int i) { return i >= 0 && i < S.run(); };
    return (inside(at) ? 0x0000ffffu : 0u) | (inside(at + 1) ? 0xffff0000u : 0u);
  }

  /// The windows of a warp's places as fragments of mma.sync.
  struct Reader {
    const uint32_t* word;  // of the thread's first place, at the pair of elements that it reads of a group
    uint32_t selector;     // of the bytes of a pair that may straddle words
    uint32_t masks[2];     // of a run's first group, and of its last

    CERMET_DEVICE Reader(const char* smem, int line) {
      const int lane = static_cast<int>(lane_index()), pair = 2 * (lane % 4);
      const int at = line * S.stride_h * S.patch_row() + S.first() - S.lead() + lane / 4 * S.step() + pair;
      word = reinterpret_cast<const uint32_t*>(smem) + at / 2;
      selector = at % 2 == 0 ? 0x3210u : 0x5432u;
      masks[0] = mask_of(pair - S.lead());
      masks[1] = mask_of((S.row_groups() - 1) * unit + pair - S.lead());
    }
    /// Of place lane / 4 + 8 * half of line `line`; the group is known to the compiler.
    CERMET_DEVICE uint32_t pair(int group, int line, int half) const {
      if (group >= S.groups()) return 0;
      const int tap_row = group / S.row_groups(), of_row = group % S.row_groups();
      const uint32_t* const from =
          word + ((line * S.stride_h + tap_row) * S.patch_row() + of_row * unit + half * 8 * S.step()) / 2;
      uint32_t value = from[0];
      if constexpr (!even) value = __byte_perm(value, from[1], selector);
      if (of_row == 0 && (S.lead() > 0 || S.run() < unit)) value &= masks[0];
      else if (of_row == S.row_groups() - 1 && S.lead() + S.run() < S.row_groups() * unit) value &= masks[1];
      return value;
    }
  };

  static CERMET_DEVICE void multiply(char* smem, int line, float (&sums)[lines][tiles_n][4]) {
    const Reader reader(smem, line);
    const int lane = static_cast<int>(lane_index());
    const T* const b = weights(smem) + (lane / 16 * 8 + lane % 8) * S.weight_row() + lane / 8 % 2 * unit;
#pragma unroll
    for (int s = 0; s < S.steps(); ++s) {
      uint32_t a[lines][4];
#pragma unroll
      for (int i = 0; i < lines; ++i)
#pragma unroll
        for (int r = 0; r < 4; ++r) a[i][r] = reader.pair(2 * s + r / 2, i, r % 2);
#pragma unroll
      for (int j = 0; j < tiles_n; j += 2) {
        uint32_t two[4];
        ptx::ldmatrix_x4(two, b + j * 8 * S.weight_row() + s * 2 * unit);
        const uint32_t low[2] = {two[0], two[1]}, high[2] = {two[2], two[3]};
#pragma unroll
        for (int i = 0; i < lines; ++i) {
          ptx::mma_m16n8k16(sums[i][j], a[i], low, T{});
          ptx::mma_m16n8k16(sums[i][j + 1], a[i], high, T{});
        }
      }
    }
  }

  static CERMET_DEVICE void store(const Params& p, const TileCoord& coord, int line,
                                  const float (&sums)[lines][tiles_n][4]) {
    const int lane = static_cast<int>(lane_index());
#pragma unroll
    for (int i = 0; i < lines; ++i) {
      const int row = coord.row + line + i;
      if (row >= p.rows) continue;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int column = coord.column + lane / 4 + 8 * half;
        if (column >= p.columns) continue;
        const int at = (coord.sample * p.rows + row) * p.columns + column;
#pragma unroll
        for (int n = 0; n < tiles_n; n += 4) {
          float values[8];
#pragma unroll
          for (int v = 0; v < 8; ++v) values[v] = sums[i][n + v / 2][2 * half + v % 2];
          epilogue::store_results<E>(p.extra, p.to, at, coord.output + n * 8 + lane % 4 * 8, p.outputs, p.vectors,
                                     values);
        }
      }
    }
  }

  template <class Team>
  static CERMET_DEVICE void run(const Params& p, uint32_t item, Team, char* smem, Ring& ring) {
    static_assert(Team::warps * lines == places);
    const TileCoord coord = find(p, item);
    if (coord.output != ring.column) {
      load_weights<Team>(p, coord.output, smem);
      ring.column = coord.output;
    }
    load_patch<Team>(p, coord, smem);
    Team::sync();
    const int line = static_cast<int>(Team::warp()) * lines;
    float sums[lines][tiles_n][4] = {};
    multiply(smem, line, sums);
    Team::sync();  // before the next item's pixels
    store(p, coord, line, sums);
  }
};

}  // namespace cermet::conv
