// Parts of tensors, for work on some of their rows.
#pragma once

#include "base/tensor.hpp"

namespace cermet::cpu {

/// Whether elements lie at one distance, whatever dimensions they are in.
bool is_even(const TensorView& view);
/// Whether all rows of a tensor lie at the same distance, in one dimension.
bool is_matrix(const TensorView& view);
/// The part of a tensor that belongs to rows [first, last): of one that is no matrix, a single row.
TensorView slice_rows(const TensorView& view, std::int64_t first, std::int64_t last);
/// Elements [first, last) of a tensor: of one that is not even, a single one.
TensorView slice_values(const TensorView& view, std::int64_t first, std::int64_t last);

}  // namespace cermet::cpu
