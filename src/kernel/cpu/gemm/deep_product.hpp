// When a product by AMX tiles takes its reduction in slices, and the memory of its sums.
#pragma once

#include "kernel/cpu/gemm/amx.hpp"
#include "kernel/cpu/gemm/panels.hpp"
#include "kernel/cpu/gemm/row_form.hpp"

namespace cermet::cpu {

/// Blocks of rows and panels of an item: 240 rows by 256 columns, 240 KiB of sums. From the third-level cache, which
/// gives a core a sixth of what the second gives, each element of rows then comes once for 256 columns, and each of a
/// weight once for 240 rows.
inline constexpr std::int64_t deep_blocks = 5, deep_panels = 8;
/// Bytes of a row in a slice: 480 KiB of an item's rows, 64 KiB of a panel.
inline constexpr std::int64_t deep_slice_bytes = 2048;
/// Bytes of packed rows that stay in the second-level cache with the panels that they meet.
inline constexpr std::int64_t cached_row_bytes = 1280 << 10;

/// Whether so many rows, which a thread multiplies with a panel, leave the second-level cache meanwhile.
constexpr bool is_deep(RowForm form, std::int64_t rows, std::int64_t row_bytes) {
  return form == RowForm::chunks && std::min(rows, packed_row_limit) * row_bytes > cached_row_bytes;
}

/// Bytes of the sums of `threads` threads.
constexpr std::int64_t deep_product_bytes(int threads) {
  return threads * deep_blocks * deep_panels * amx_block_rows * panel_columns *
         static_cast<std::int64_t>(sizeof(float));
}

}  // namespace cermet::cpu
