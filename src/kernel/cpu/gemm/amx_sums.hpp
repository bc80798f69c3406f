// The tiles of sums of a block of rows and a panel: two for each tile of rows, in the first tile registers.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernel/cpu/amx.hpp"
#include "kernel/cpu/gemm/panels.hpp"

namespace cermet::cpu {

/// Bytes from one row of sums to the next.
inline constexpr std::int64_t sums_step = 4 * panel_columns;

/// Calls with_tile<tile>(where) for the tiles of sums, two for each of row_tiles tiles of rows, three at most.
template <int row_tiles, class WithTile>
[[gnu::always_inline]] inline void for_sums(float* sums, WithTile&& with_tile) {
  const auto pair = [&]<int row_tile>(std::integral_constant<int, row_tile>) [[gnu::always_inline]] {
    if constexpr (row_tile < row_tiles) {
      float* const at = sums + row_tile * amx_rows * panel_columns;
      with_tile.template operator()<2 * row_tile>(at);
      with_tile.template operator()<2 * row_tile + 1>(at + amx_rows);
    }
  };
  pair(std::integral_constant<int, 0>());
  pair(std::integral_constant<int, 1>());
  pair(std::integral_constant<int, 2>());
}

}  // namespace cermet::cpu
