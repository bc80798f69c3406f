// bf16 products with the AVX-512 pair dot product instruction (vdpbf16ps), which Highway's AVX-512 target does not have.
#pragma once

#include "kernel/cpu/prefetch.hpp"
#include "kernel/kernel.hpp"

namespace cermet::cpu {

/// tile[r][c] += sum over pairs p of rows[p][r][0] * panel[p][c][0] + rows[p][r][1] * panel[p][c][1], in float32; tile: [rows][32].
/// Each pair adds its second product, then its first, each sum rounded to nearest even: the order that gemm-inl.hpp follows too. Subnormal elements and
/// sums count as zero, which is all that the bits can differ by from fused multiply-adds.
using MultiplyPairs = void (*)(const void* rows, const void* panel, std::int64_t pairs, Ahead ahead, float* tile);

/// Most rows of a block.
inline constexpr int pairs_block_rows = 14;
/// The product for 1 <= rows <= pairs_block_rows; call it where active_isa() is avx512_bf16 only.
MultiplyPairs multiply_pairs(std::int64_t rows);

/// Why products of bf16 with bf16 are not taken by pairs on this machine: no instruction for it, too slow against float32, or CERMET_BF16_PRODUCTS.
Decline pairs_decline();

}  // namespace cermet::cpu
