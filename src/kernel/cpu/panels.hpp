// Packed weights: a matrix [N, K] as panels of 32 columns (rows of the stored weight) in which consecutive reduction steps lie next to each other,
// so that a product streams a panel once, whatever the vector width. N and K are padded with zeros.
#pragma once

#include "base/checked.hpp"
#include "kernel/kernel.hpp"

namespace cermet::cpu {

inline constexpr std::int64_t panel_columns = 32;

/// Layout of a packed weight by the type it is stored in; null where there is none.
///   f32, f16: [N/32][K][32]
///   bf16:     [N/32][K/2][32][2], pairs of reduction steps, which widen by a shift and a mask and feed bf16 dot products as they are
const WeightLayout* panel_layout(DType dtype);

/// Reduction steps that lie next to each other for one column.
constexpr std::int64_t panel_unit(DType dtype) { return dtype == DType::bf16 ? 2 : 1; }

/// Rows of the left operand that are packed at a time, which bounds workspace.
inline constexpr std::int64_t packed_row_limit = 1024;

inline std::int64_t panel_count(std::int64_t columns) { return div_up(columns, panel_columns); }
/// Bytes of one panel with `length` reduction steps.
inline std::int64_t panel_bytes(DType dtype, std::int64_t length) {
  return round_up(length, panel_unit(dtype)) * panel_columns * static_cast<std::int64_t>(size_of(dtype));
}

}  // namespace cermet::cpu
