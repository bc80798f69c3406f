// Copies between strided layouts: any strides, words as wide as strides and addresses allow, the choice made at launch.
#pragma once

#include "kernel/cuda/device/movement/axes.cuh"
#include "kernel/cuda/device/movement/copy.hpp"

namespace cermet::copy {

/// One work item: threads * per_thread consecutive words of the destination's order.
struct Task {
  using Params = copy::Params;

  template <class Word, class Team>
  static CERMET_DEVICE void move(Team team, const Params& p, uint32_t item) {
    const Word* from = static_cast<const Word*>(p.from);
    move_words<Word, threads>(team, p.axes, p.per_thread, item, static_cast<Word*>(p.to),
                              [&](const int64_t(&offset)[2]) { return from ? from[offset[0]] : Word{}; });
  }

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char*) {
    by_word_size(p.word_bytes, [&](auto zero) { move<decltype(zero)>(team, p, item); });
  }
};

struct Relayout {
  using Params = RelayoutParams;

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char*) {
    const int64_t position = static_cast<int64_t>(item) * threads + team.rank();
    if (position >= p.source.count) return;
    int64_t from[1], to[1];
    offsets_at(p.source, position, from);
    offsets_at(p.destination, position, to);
    by_word_size(p.word_bytes, [&](auto zero) {
      using Word = decltype(zero);
      static_cast<Word*>(p.to)[to[0]] = static_cast<const Word*>(p.from)[from[0]];
    });
  }
};

/// One work item: a tile of one plane, through shared memory, so that both sides see whole sectors.
struct Transpose {
  using Params = TransposeParams;

  template <class Word, class Team>
  static CERMET_DEVICE void move(Team team, const Params& p, uint32_t item, char* smem) {
    Word(*tile)[tile_side + 1] = reinterpret_cast<Word(*)[tile_side + 1]>(smem);  // [along, across]
    const int64_t row = item / p.tiles_along, plane = row / p.tiles_across;
    const int64_t along = (item - row * p.tiles_along) * tile_side, across = (row - plane * p.tiles_across) * tile_side;
    int64_t offset[2];
    offsets_at(p.outer, plane, offset);
    const Word* from = static_cast<const Word*>(p.from) + offset[0];
    Word* to = static_cast<Word*>(p.to) + offset[1];
    const int lane = static_cast<int>(team.rank()) % tile_side, first = static_cast<int>(team.rank()) / tile_side;
#pragma unroll
    for (int i = 0; i < tile_side; i += threads / tile_side)
      if (along + first + i < p.along && across + lane < p.across)
        tile[first + i][lane] = from[(along + first + i) * p.along_stride + across + lane];
    team.sync();
#pragma unroll
    for (int i = 0; i < tile_side; i += threads / tile_side)
      if (across + first + i < p.across && along + lane < p.along)
        to[(across + first + i) * p.across_stride + along + lane] = tile[lane][first + i];
    team.sync();
  }

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char* smem) {
    switch (p.word_bytes) {
      case 1: return move<uint8_t>(team, p, item, smem);
      case 2: return move<uint16_t>(team, p, item, smem);
      case 4: return move<uint32_t>(team, p, item, smem);
      default: return move<uint64_t>(team, p, item, smem);
    }
  }
};

/// One work item: a range of one plane, whose few rows become neighbours: read and written 16 bytes at a time.
struct Interleave {
  using Params = TransposeParams;

  template <class Word, class Team>
  static CERMET_DEVICE void move(Team team, const Params& p, uint32_t item, char* smem) {
    constexpr int width = per_16_bytes<Word>;
    using Words = Vector<Word, width>;
    Words* const tile = reinterpret_cast<Words*>(smem);  // [along, interleave_range / width]
    const Word* const words = reinterpret_cast<const Word*>(smem);
    const int64_t plane = item / p.tiles_across, first = (item - plane * p.tiles_across) * interleave_range;
    int64_t offset[2];
    offsets_at(p.outer, plane, offset);
    const Word* from = static_cast<const Word*>(p.from) + offset[0] + first;
    Word* to = static_cast<Word*>(p.to) + offset[1] + first * p.along;
    const int along = static_cast<int>(p.along),
              count = static_cast<int>(min_of<int64_t>(interleave_range, p.across - first)),
              rank = static_cast<int>(team.rank());
    for (int i = rank; i < along * (interleave_range / width); i += threads) {
      const int row = i / (interleave_range / width), column = i % (interleave_range / width) * width;
      if (column < count) tile[i] = *reinterpret_cast<const Words*>(from + row * p.along_stride + column);
    }
    team.sync();
    for (int i = rank * width; i < count * along; i += threads * width) {
      int column = i / along, row = i - column * along;
      Words v;
#pragma unroll
      for (int k = 0; k < width; ++k) {
        v[k] = words[row * interleave_range + column];
        if (++row == along) row = 0, ++column;
      }
      *reinterpret_cast<Words*>(to + i) = v;
    }
    team.sync();
  }

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char* smem) {
    if (p.word_bytes == 2) move<uint16_t>(team, p, item, smem);
    else move<uint32_t>(team, p, item, smem);
  }
};

}  // namespace cermet::copy
