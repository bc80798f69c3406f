// What comes after oneDNN's products: the epilogue of a region over sums that a thread holds.
#pragma once

#include "kernel/cpu/tile_program.hpp"
#include "kernel/kernel.hpp"

namespace cermet::cpu {

/// Why a region's epilogue does not run over sums of its product, which are i32 where `quantized values` and f32
/// otherwise, or there is no oneDNN.
Decline onednn_sums_decline(const Region& region, bool quantized);

/// Runs the epilogue over the dense sums of a piece of the results.
void finish_onednn_sums(const TileRun& epilogue, const TileRange& piece, const float* sums);

}  // namespace cermet::cpu
