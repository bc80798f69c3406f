// Packed weights: a matrix [N, K] as panels of 32 columns (rows of the stored weight) in which consecutive reduction
// steps are adjacent, so that a matrix product streams a panel once, whatever the vector width. N and K are padded with
// zeros.
#pragma once

#include "base/checked.hpp"
#include "base/dtype.hpp"

namespace cermet {
struct WeightLayout;
}

namespace cermet::cpu {

inline constexpr std::int64_t panel_columns = 32;
/// Rows of the left operand that are packed at a time, which bounds workspace.
inline constexpr std::int64_t packed_row_limit = 1024;
/// Reduction steps of one sum of int8 columns; also those that share a block scale.
inline constexpr std::int64_t sum_block = 128;

/// Layout of a packed weight by the type it is stored in; null where there is none.
///   f32, f16: [N/32][K][32]
///   bf16:     [N/32][K/2][32][2], pairs of reduction steps, which widen by a shift and a mask
///   i8:       [N/32][K/4][32][4], quads as byte dot products take them; each panel is followed by the int32 sums of
///   its columns, and the last one by
///             those over blocks of 128, [N/32][K/128][32], which only block scales need
///   fp8:      as bf16, which holds every value of both formats
const WeightLayout* panel_layout(DType dtype);

/// Type of the elements in a packed panel.
constexpr DType panel_type(DType dtype) {
  return dtype == DType::f8_e4m3 || dtype == DType::f8_e5m2 ? DType::bf16 : dtype;
}
/// Adjacent reduction steps of one column.
constexpr std::int64_t panel_unit(DType dtype) {
  return panel_type(dtype) == DType::bf16 ? 2 : dtype == DType::i8 ? 4 : 1;
}
constexpr std::int64_t panel_count(std::int64_t columns) { return div_up(columns, panel_columns); }
/// Bytes of the elements of one panel with `length` reduction steps.
std::int64_t panel_element_bytes(DType dtype, std::int64_t length);
/// Bytes from one panel to the next.
std::int64_t panel_bytes(DType dtype, std::int64_t length);
/// Where the sums over blocks of panel `panel` of an int8 matrix begin.
std::int64_t block_sums_offset(std::int64_t columns, std::int64_t length, std::int64_t panel);
/// Bytes of a packed matrix.
std::int64_t panels_bytes(DType dtype, std::int64_t columns, std::int64_t length);

/// Workspace that a grouped product needs to list the groups that have rows.
constexpr std::int64_t group_workspace_bytes(std::int64_t groups) {
  return round_up(groups * static_cast<std::int64_t>(sizeof(std::int64_t)), 64);
}

/// Float32 values of the 256 bit patterns of an fp8 type.
const float* fp8_values(DType dtype);

}  // namespace cermet::cpu
