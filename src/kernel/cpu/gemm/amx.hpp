// Products of bf16 and int8 panels with AMX tiles: blocks of three by two tiles, 48 rows by the 32 columns of a panel.
// An AmxTiles must live around them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/dtype.hpp"
#include "kernel/cpu/gemm/prefetch.hpp"

namespace cermet::cpu {

/// Most rows of a block.
inline constexpr int amx_block_rows = 48;
/// Bytes that products read past the last block of packed rows, whatever they hold.
inline constexpr std::int64_t amx_overread = 1024;

/// tile[r][c] = [tile[r][c], unless it `begins`] + sum over k of rows[k][r] * panel[k][c] for the `units` units of a
/// panel; tile: [rows][32], with room for amx_block_rows rows, of which those past the block's are undefined then.
using AmxProduct = void (*)(const void* rows, const void* panel, std::int64_t units, Ahead ahead, bool begins,
                            float* tile);

/// Products of rows in chunks (RowForm) of bf16 with bf16 panels, or of int8 with int8 panels, whose sums are int32:
/// element r - 1 takes blocks of r rows. Slices of panels are whole chunks but for the last. A bf16 sum is that of sums
/// over 32 steps of K each, in rising order, which add as AmxBf16 says: it does not depend on rows, threads or slices.
const AmxProduct* amx_products(DType type);

/// Why products of bf16, or of int8, do not go by tiles on this machine: no instruction for it, too slow against what
/// there is, or CERMET_AMX_PRODUCTS.
std::optional<std::string> amx_decline(DType type);

}  // namespace cermet::cpu
