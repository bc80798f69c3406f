// Products of float32 rows with constant weights by AMX tiles, each operand as three bf16 (parts.hpp): linear, and
// convolutions of single pixels.
#pragma once

#include "kernel/cpu/gemm/binding.hpp"
#include "kernel/cpu/gemm/panels.hpp"
#include "kernel/cpu/gemm/parts.hpp"
#include "kernel/cpu/gemm/window_rows.hpp"

namespace cermet::cpu {

/// Steps of the reduction in a slice: its parts take 48 KiB, twice, and 256 packed rows of it 384 KiB, which the
/// second-level cache holds together.
inline constexpr std::int64_t parts_slice = 256;
/// Blocks of rows and panels of an item at most. Several panels where rows leave the cache between panels.
inline constexpr std::int64_t parts_blocks = 8, parts_panels = 6;
/// Bytes of the packed rows of an item that stay in the second-level cache.
inline constexpr std::int64_t parts_cached_rows = 896 << 10;
/// Blocks of rows that a thread packs for itself, to meet all panels of a weight of so many bytes, or of twice as many
/// in few panels, of which threads that share them would have unlike numbers.
inline constexpr std::int64_t own_blocks = 4, own_weight_bytes = 1280 << 10, few_panels = 16;

/// Rows of so many blocks, in whole tiles: one block may have three.
constexpr std::int64_t rows_of_parts(std::int64_t blocks) { return (2 * blocks + 1) * 16; }

/// What each thread has: the sums of an item, and two slices in parts.
inline constexpr std::int64_t parts_sums_bytes = parts_panels * rows_of_parts(parts_blocks) * panel_columns * 4,
                              parts_slice_bytes = parts_slice / parts_steps * parts_panel_bytes,
                              parts_thread_bytes = parts_sums_bytes + 2 * parts_slice_bytes;

/// y = x w' and what its region computes around it, or with windows in place of rows of x, before which the binding has
/// nothing. The weight has float32 panels.
void linear_parts(const LaunchArgs& args, const ProductBinding& binding, const WindowPlan* windows = nullptr);
/// What a product must have at least.
struct PartsSizes {
  std::int64_t rows, columns = 1, steps = 1;
};
/// Why a product is not taken whatever its region has around it.
Decline linear_parts_decline(const Problem& problem, const PartsSizes& least);
std::int64_t linear_parts_workspace(const Region& region, int threads);
double linear_parts_cost(const Region& region, const DeviceLimits& limits);

}  // namespace cermet::cpu
