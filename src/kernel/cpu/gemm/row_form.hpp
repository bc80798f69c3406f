// How a product packs the rows of its left operand, which says what multiplies them.
#pragma once

#include <cstdint>

#include "base/checked.hpp"

namespace cermet::cpu {

enum class RowForm : std::uint8_t {
  wide,    ///< [k][row] float32
  units,   ///< [k / unit][row][unit]: the adjacent steps of panels, for dot products of pairs of bf16 or quads of int8
  chunks,  ///< [k / chunk][row][chunk]: 64 bytes of a row at a time, for AMX tiles
  parts,   ///< [k / 32][part][row][32]: float32 as three bf16, for AMX tiles (parts.hpp)
};

/// Bytes of a chunk of a row.
inline constexpr std::int64_t chunk_bytes = 64;

/// Bytes of one packed row of `length` elements, padding included.
constexpr std::int64_t packed_row_bytes(RowForm form, std::int64_t length, std::int64_t element_bytes) {
  if (form == RowForm::parts) return 3 * round_up(2 * length, chunk_bytes);
  if (form == RowForm::chunks) return round_up(length * element_bytes, chunk_bytes);
  return round_up(length, 2) * (form == RowForm::wide ? static_cast<std::int64_t>(sizeof(float)) : element_bytes);
}

/// Elements of a packed row of quantized values, padding included.
constexpr std::int64_t padded_quantized(RowForm form, std::int64_t length) {
  return round_up(length, form == RowForm::chunks ? chunk_bytes : 4);
}

}  // namespace cermet::cpu
