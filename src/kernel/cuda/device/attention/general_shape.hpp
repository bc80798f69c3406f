// Configuration and sizes of the general attention task, for both halves.
#pragma once

#include "kernel/cuda/device/attention/attention_params.hpp"

namespace cermet::attention {

struct GeneralConfig {
  int head_size, value_size, group;
  int block;  ///< tokens of a page; 0: keys are not paged
  DType q, kv, out;
  int warp_rows;         ///< rows of a warp: 1, 2, 4 or 8
  bool columns = false;  ///< values are in columns

  template <class Visit>
  constexpr void fields(Visit&& visit) const {
    visit("head_size", head_size), visit("value_size", value_size), visit("group", group), visit("block", block);
    visit("q", q), visit("kv", kv), visit("out", out), visit("warp_rows", warp_rows);
    visit("columns", columns);
  }
};

inline constexpr int general_warps = 4, general_keys = 32;

/// Floats from one key to the next in shared memory: an odd number of 16-byte groups, so that lanes on different keys
/// use different banks.
constexpr int64_t general_row(int64_t size) { return 4 * ((size + 3) / 4 | 1); }

/// Shared memory: queries, keys or values, and weights, all float32.
constexpr int64_t general_shared_bytes(int64_t head_size, int64_t value_size, int warp_rows) {
  const int64_t rows = int64_t{general_warps} * warp_rows, widest = head_size > value_size ? head_size : value_size;
  return 4 * (rows * ((head_size + 3) / 4 * 4) + general_keys * general_row(widest) + rows * general_keys);
}

}  // namespace cermet::attention
