// non_max_suppression: a team finds the best box of a list that is left and strikes out what it overlaps, again and
// again; then lists are put one after the other.
#pragma once

#include "kernel/cuda/device/image/suppression.hpp"
#include "kernel/cuda/device/types.cuh"
#include "op/box_overlap.hpp"

namespace cermet::suppression {

struct Config {
  DType boxes, scores;
};

struct Best {
  float score;
  int64_t box;  ///< -1: none
  CERMET_DEVICE bool worse_than(const Best& other) const {
    if (box < 0 || other.box < 0) return other.box >= 0;
    return score < other.score || (score == other.score && other.box < box);
  }
};

/// One item: the list of an image and a class.
template <Config C>
struct SelectTask {
  using Params = suppression::Params;

  static CERMET_DEVICE Box box_at(const Params& p, int64_t image, int64_t i) {
    const auto* at = static_cast<const Element<C.boxes>*>(p.boxes) + image * p.box_strides[0] + i * p.box_strides[1];
    return box_of(to_float(at[0]), to_float(at[1]), to_float(at[2]), to_float(at[3]), p.centered);
  }

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char* smem) {
    Best* shared = reinterpret_cast<Best*>(smem);  // [warps]
    const int64_t list = item, image = list / p.classes;
    const auto* scores = static_cast<const Element<C.scores>*>(p.scores) + image * p.score_strides[0] +
                         list % p.classes * p.score_strides[1];
    uint8_t* gone = p.gone + list * p.size;
    for (int64_t i = team.rank(); i < p.size; i += threads) gone[i] = !(to_float(scores[i]) > p.least);
    int64_t length = 0;
    for (; length < p.most; ++length) {
      Best best{0, -1};
      for (int64_t i = team.rank(); i < p.size; i += threads) {  // each thread sees to its own boxes
        const Best other{gone[i] ? 0.0f : to_float(scores[i]), gone[i] ? -1 : i};
        if (best.worse_than(other)) best = other;
      }
#pragma unroll
      for (int mask = 16; mask > 0; mask /= 2) {
        const Best other{__shfl_xor_sync(0xffffffffu, best.score, mask), __shfl_xor_sync(0xffffffffu, best.box, mask)};
        if (best.worse_than(other)) best = other;
      }
      if (lane_index() == 0) shared[team.warp()] = best;
      team.sync();
      best = shared[0];
      for (int w = 1; w < Team::warps; ++w)
        if (best.worse_than(shared[w])) best = shared[w];
      team.sync();
      if (best.box < 0) break;
      if (team.rank() == 0) p.kept[list * p.most + length] = best.box;
      const Box chosen = box_at(p, image, best.box);
      for (int64_t i = team.rank(); i < p.size; i += threads)
        if (!gone[i] && (i == best.box || overlaps(box_at(p, image, i), chosen, p.threshold))) gone[i] = 1;
    }
    if (team.rank() == 0) p.counts[list] = length;
  }
};

/// One item: the rows of a list. Lists after the last fill what is left.
struct GatherTask {
  using Params = suppression::Params;

  static CERMET_DEVICE void write(const Params& p, int64_t row, int64_t image, int64_t type, int64_t box) {
    int64_t* to = p.selected + row * p.row_stride;
    to[0] = image;
    to[1] = type;
    to[2] = box;
  }

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char*) {
    const int64_t list = item;
    int64_t before = 0, total = 0;
    for (int64_t l = 0; l < p.lists; ++l) {
      if (l == list) before = total;
      total += p.counts[l];
    }
    if (list < p.lists) {
      for (int64_t i = team.rank(); i < p.counts[list]; i += threads)
        write(p, before + i, list / p.classes, list % p.classes, p.kept[list * p.most + i]);
      return;
    }
    if (team.rank() == 0) p.count[0] = total;
    for (int64_t row = total + team.rank(); row < p.lists * p.most; row += threads) write(p, row, -1, -1, -1);
  }
};

}  // namespace cermet::suppression
