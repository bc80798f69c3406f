// nonzero, in three launches: counts of chunks, their running sum, and the coordinates, with zeros after them.
#pragma once

#include "kernel/cuda/device/movement/axes.cuh"
#include "kernel/cuda/device/movement/nonzero.hpp"
#include "kernel/cuda/device/sampling/group.cuh"

namespace cermet::nonzero {

CERMET_DEVICE bool is_nonzero(const Params& p, int64_t position) {
  if (position >= p.axes.count) return false;
  int64_t offset[1];
  offsets_at(p.axes, position, offset);
  uint64_t bits = 0;
  switch (p.element_bytes) {
    case 1: bits = static_cast<const uint8_t*>(p.x)[offset[0]]; break;
    case 2: bits = static_cast<const uint16_t*>(p.x)[offset[0]]; break;
    case 4: bits = static_cast<const uint32_t*>(p.x)[offset[0]]; break;
    default: bits = static_cast<const uint64_t*>(p.x)[offset[0]];
  }
  return (bits & p.mask) != 0;
}

/// One work item: a chunk.
struct Count {
  using Params = nonzero::Params;

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char* smem) {
    Group group(team, *reinterpret_cast<GroupScratch*>(smem));
    uint64_t found = 0;
    for (int r = 0; r < rounds; ++r) found += is_nonzero(p, item * chunk + r * threads + team.rank());
    found = group.template block_reduce<SumU64>(found);
    if (team.rank() == 0) p.before[item] = static_cast<int64_t>(found);
  }
};

/// One work item: everything.
struct Scan {
  using Params = nonzero::Params;

  template <class Team>
  static __device__ void run(const Params& p, uint32_t, Team team, char* smem) {
    Group group(team, *reinterpret_cast<GroupScratch*>(smem));
    uint64_t carry = 0;
    for (int64_t begin = 0; begin < p.chunks; begin += threads) {
      const int64_t i = begin + team.rank();
      uint64_t total;
      const uint64_t before = group.block_scan(i < p.chunks ? static_cast<uint64_t>(p.before[i]) : 0, total);
      if (i < p.chunks) p.before[i] = static_cast<int64_t>(carry + before);
      carry += total;
    }
    if (team.rank() == 0) p.before[p.chunks] = *p.count = static_cast<int64_t>(carry);
  }
};

/// One work item: a chunk.
struct Write {
  using Params = nonzero::Params;

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char* smem) {
    Group group(team, *reinterpret_cast<GroupScratch*>(smem));
    int64_t at = p.before[item];
    const int64_t nonzeros = p.before[p.chunks];
    for (int r = 0; r < rounds; ++r) {
      const int64_t position = item * chunk + r * threads + team.rank();
      const bool found = is_nonzero(p, position);
      uint64_t total;
      const int64_t column = at + static_cast<int64_t>(group.block_scan(found, total));
      at += static_cast<int64_t>(total);
      if (found) {
        for_coordinates(p.axes, position, [&](int a, int64_t coordinate) {
          if (a < p.rank) p.coordinates[a * p.stride + column] = coordinate;
        });
      }
      if (position >= nonzeros && position < p.axes.count)
        for (int32_t a = 0; a < p.rank; ++a) p.coordinates[a * p.stride + position] = 0;
    }
  }
};

}  // namespace cermet::nonzero
