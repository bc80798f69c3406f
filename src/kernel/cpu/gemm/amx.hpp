// Products of bf16 and int8 panels with AMX tiles: blocks of two by two tiles, 32 rows by the 32 columns of a panel. An AmxTiles must live around them.
#pragma once

#include <optional>
#include <string>

#include "kernel/cpu/gemm/float.hpp"

namespace cermet::cpu {

/// Most rows of a block.
inline constexpr int amx_block_rows = 32;
/// Bytes that products read past the last block of packed rows, whatever they hold.
inline constexpr std::int64_t amx_overread = 1024;

/// Products of rows in chunks (RowForm) of bf16 with bf16 panels, or of int8 with int8 panels, whose sums are int32: element r - 1 takes blocks of r rows. They
/// take tiles with room for amx_block_rows, of which the rows past the block's are undefined then. Slices of panels are whole chunks but for the last.
/// A bf16 sum is that of the sums over 32 steps of K, in rising order, each as AmxBf16 says: it does not depend on rows, threads or slices.
const MultiplyPanel* amx_products(DType type);

/// Why products of bf16, or of int8, do not go by tiles on this machine: no instruction for it, too slow against what there is, or CERMET_AMX_PRODUCTS.
std::optional<std::string> amx_decline(DType type);

}  // namespace cermet::cpu
