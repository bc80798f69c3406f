// Float32 products by AMX tiles. A float32 is the sum of three bf16, its parts, of which each takes the next 8 bits of
// the significand. Of the nine products of parts the six largest are added: what is left out is at most 2^-22 of a
// product, of either sign, and additions round less than those of a float32 chain, because tiles start each sum of 32
// steps from zero. The scheme is that of Henry, Tang and Heinecke, "Leveraging the bfloat16 Artificial Intelligence
// Datatype For Higher-Precision Computations" (2019). Elements below 2^-110 lose bits, because tiles take subnormal
// numbers as zero; one that is not finite makes what it is part of NaN.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/tensor.hpp"
#include "kernel/cpu/gemm/window_rows.hpp"

namespace cermet::cpu {

/// Steps of the reduction in a chunk: what a tile takes of a row.
inline constexpr std::int64_t parts_steps = 32;
inline constexpr int part_count = 3;
/// Bytes of a chunk of one packed row, [part][32 bf16], and of a chunk of a panel, [part][pair of steps][32
/// columns][2].
inline constexpr std::int64_t parts_row_bytes = part_count * 64, parts_panel_bytes = part_count * 16 * 128;

/// Packs float32 rows [first, last) as [chunk][part][row][32], padded with zeros.
void pack_parts(const Rows& rows, std::int64_t first, std::int64_t last, std::byte* packed);
/// The same of windows; those of several pixels have whole chunks of channels.
void pack_parts(const WindowRows& windows, std::int64_t first, std::int64_t last, std::byte* packed);

/// A slice of a float32 panel (panels.hpp) that is being split into parts, a pair of steps at a time: between products,
/// because the processor splits while its tiles multiply.
struct PanelParts {
  const float* from = nullptr;  ///< [step][32]
  std::int64_t steps = 0;       ///< of the slice that are not split yet; those up to whole chunks are zeros
  std::int64_t pairs = 0;       ///< the same, in pairs of whole chunks
  std::byte* to = nullptr;

  PanelParts() = default;
  PanelParts(const float* slice, std::int64_t slice_steps, std::byte* parts);
};

/// Splits what is left of a slice.
void split_remaining(PanelParts& parts);

/// sums[r][c] = [sums[r][c], unless it `begins`] + sum over k of rows[k][r] * panel[k][c] for `chunks` chunks of both;
/// sums: [row_count rounded up to whole tiles][32], of which rows past row_count are undefined. Rows may be read up to
/// the end of their last tile. With each chunk up to `share` pairs of steps of `next` are split. An AmxTiles must live
/// around it.
using PartsProduct = void (*)(const std::byte* rows, std::int64_t row_count, const std::byte* panel,
                              std::int64_t chunks, bool begins, PanelParts& next, std::int64_t share, float* sums);

/// The product for rows of two or three tiles; a row has the same bits in both.
PartsProduct parts_product(std::int64_t row_tiles);

/// Why float32 products do not go by tiles on this machine: no instruction for it, too slow against float32, or
/// CERMET_AMX_PRODUCTS.
std::optional<std::string> parts_decline();
/// How many times the rate of float32 they are modelled to run at.
double parts_ratio();

}  // namespace cermet::cpu
