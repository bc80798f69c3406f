// int8 products with the AVX-512 byte dot product instruction, which Highway does not have.
#pragma once

#include <cstdint>

#include "kernel/cpu/gemm/prefetch.hpp"

namespace cermet::cpu {

/// tile[r][c] = sum over k of (rows[k / 4][r][k % 4] - 128) * panel[k / 4][c][k % 4], modulo 2^32. rows: quantized
/// values + 128 as unsigned bytes; column_sums: those of the panel, [32]; tile: [rows][32].
using MultiplyQuantized = void (*)(const std::uint8_t* rows, const std::int8_t* panel, std::int64_t quads, Ahead ahead,
                                   const std::int32_t* column_sums, std::int32_t* tile);

/// Most rows of a block.
inline constexpr int vnni_block_rows = 14;
/// The product for 1 <= rows <= vnni_block_rows; call it where active_isa() is avx512_vnni or above only.
MultiplyQuantized multiply_quantized_vnni(std::int64_t rows);

}  // namespace cermet::cpu
