// How a product packs the rows of its left operand, which says what multiplies them.
#pragma once

#include <cstdint>

namespace cermet::cpu {

enum class RowForm : std::uint8_t {
  wide,    ///< [k][row] float32
  units,   ///< [k / unit][row][unit]: the adjacent steps of panels, for dot products of pairs of bf16 or quads of int8
  chunks,  ///< [k / chunk][row][chunk]: 64 bytes of a row at a time, for AMX tiles
};

/// Bytes of a chunk of a row.
inline constexpr std::int64_t chunk_bytes = 64;

}  // namespace cermet::cpu
