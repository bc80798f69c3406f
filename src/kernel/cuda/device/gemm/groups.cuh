// Rows sorted by group: which group and rows a tile covers.
#pragma once

#include "kernel/cuda/device/team.cuh"

namespace cermet::gemm {

struct GroupTile {
  int group = -1;    ///< -1: the tile is past the last
  int row = 0;       ///< first row of the tile
  int rows_end = 0;  ///< end of the group's rows
};

/// Where rows of group e begin. Offsets that fall or leave [0, rows] give no rows instead of undefined ones.
template <class Index>
CERMET_DEVICE int group_begin(const Index* offsets, int rows, int e) {
  return static_cast<int>(min_of<int64_t>(max_of<int64_t>(static_cast<int64_t>(offsets[e]), 0), rows));
}

/// Tile `tile` of the tiles that start at each group's first row, but for the first `skip` of each; a whole warp calls,
/// every lane gets the same. There are at most rows / block_m + groups of them, and without each group's first at most
/// rows / block_m. `count`: how many there are, where no group has the tile.
template <class Index>
CERMET_DEVICE GroupTile find_group(const Index* offsets, int groups, int rows, int block_m, int tile, int skip,
                                   int& count) {
  const int lane = static_cast<int>(lane_index()), per_lane = (groups + 31) / 32;
  const int begin = min_of(lane * per_lane, groups), end = min_of(begin + per_lane, groups);
  const auto at = [&](int e) { return group_begin(offsets, rows, e); };
  const auto tiles_of = [&](int e) { return max_of((at(e + 1) - at(e) + block_m - 1) / block_m - skip, 0); };
  int own = 0;
  for (int e = begin; e < end; ++e) own += tiles_of(e);
  int before = own;
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const int other = __shfl_up_sync(0xffffffffu, before, step);
    if (lane >= step) before += other;
  }
  count = __shfl_sync(0xffffffffu, before, 31);
  before -= own;
  GroupTile found;
  const bool mine = tile >= before && tile < before + own;
  if (mine) {
    int e = begin;
    for (int index = tile - before;; ++e) {
      const int tiles = tiles_of(e);
      if (index < tiles) {
        found = {e, at(e) + (index + skip) * block_m, at(e + 1)};
        break;
      }
      index -= tiles;
    }
  }
  const uint32_t owner = __ballot_sync(0xffffffffu, mine);
  if (owner == 0) return {};
  const int from = __ffs(static_cast<int>(owner)) - 1;
  found.group = __shfl_sync(0xffffffffu, found.group, from);
  found.row = __shfl_sync(0xffffffffu, found.row, from);
  found.rows_end = __shfl_sync(0xffffffffu, found.rows_end, from);
  return found;
}

template <class Index>
CERMET_DEVICE GroupTile find_group(const Index* offsets, int groups, int rows, int block_m, int tile) {
  int count;
  return find_group(offsets, groups, rows, block_m, tile, 0, count);
}

/// The same tiles, with `by_number` each group's first one by the group's number, whose weight is then known before the
/// offsets are, and groups without rows have none; the others behind those. With Unweighted, those of the rows behind
/// the last group come last, with group -1 and rows. At most rows / block_m + groups + 1.
template <bool Unweighted, class Index>
CERMET_DEVICE GroupTile find_group_of_few(const Index* offsets, int groups, int rows, int block_m, int tile,
                                          bool by_number) {
  if (by_number && tile < groups) {
    const int begin = group_begin(offsets, rows, tile), end = group_begin(offsets, rows, tile + 1);
    return begin < end ? GroupTile{tile, begin, end} : GroupTile{};
  }
  if (by_number) tile -= groups;
  int count;
  const GroupTile found = find_group(offsets, groups, rows, block_m, tile, by_number ? 1 : 0, count);
  if (!Unweighted || found.group >= 0) return found;
  const int row = group_begin(offsets, rows, groups) + (tile - count) * block_m;
  return row < rows ? GroupTile{-1, row, rows} : GroupTile{};
}

}  // namespace cermet::gemm
