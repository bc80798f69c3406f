// bf16 products with the AVX-512 pair dot product instruction (vdpbf16ps), which Highway's AVX-512 target does not
// have.
#pragma once

#include <optional>
#include <string>

#include "kernel/cpu/gemm/float.hpp"

namespace cermet::cpu {

/// Most rows of a block.
inline constexpr int pairs_block_rows = 14;
/// Products of bf16 rows [k / 2][row][2] with bf16 panels: element r - 1 takes blocks of r rows; call them where
/// active_isa() is avx512_bf16 only. Each pair adds its second product, then its first, each sum rounded to nearest
/// even: the order of float.cpp. Subnormal elements and sums count as zero, which is all that the bits can differ by
/// from fused multiply-adds.
const MultiplyPanel* pair_products();

/// Why products of bf16 with bf16 are not taken by pairs on this machine: no instruction for it, too slow against
/// float32, or CERMET_BF16_PRODUCTS.
std::optional<std::string> pairs_decline();

}  // namespace cermet::cpu
