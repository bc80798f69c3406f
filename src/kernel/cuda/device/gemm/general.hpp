// Parameters of the general GEMM: host and device. Steps and strides count elements.
#pragma once

#include "kernel/cuda/device/tile/epilogue.hpp"

namespace cermet::gemm {

inline constexpr int max_batch_rank = 7;

/// An operand whose rows [batch.., m] are walked.
struct RowOperand {
  const void* data;
  int64_t row;                    ///< from one row to the next
  int64_t batch[max_batch_rank];  ///< along the batch axes
};

/// An operand of the epilogue.
struct ExtraOperand {
  epilogue::Operand operand;
  int64_t batch[max_batch_rank];  ///< along the batch axes
};

struct GeneralParams {
  RowOperand a, y, row_scale;         ///< row_scale: of blocks of the reduction; data is null for what is not there
  RowOperand also;                    ///< the second result, where the epilogue gives two
  const void *b, *b_up;               ///< [.., n, k]; b_up is a dual product's second weight
  int64_t a_k, b_k, b_row, b_up_row;  ///< steps along the reduction, and from one column of the result to the next
  int64_t b_batch[max_batch_rank], b_group;  ///< along the batch axes, or from group to group
  const float* column_scale;  ///< of blocks: of column n and block kb: [n / column_scale_columns * column_scale_row +
                              ///< kb * column_scale_block]
  int64_t column_scale_row, column_scale_block, column_scale_group, row_scale_block;
  const int32_t* column_sums;  ///< [n]: sums over the reduction of b's columns, where the epilogue reads them
  const void* offsets;         ///< [groups + 1]
  int32_t m, n, k, groups, column_scale_columns;
  int32_t batch_rank, batch_dims[max_batch_rank];
  bool a_vectors, b_vectors;  ///< addresses and steps are multiples of 4 elements, or of 16 bytes for int8; always 16
                              ///< bytes for the tensor cores
  ExtraOperand extra[epilogue::most_extras];
};

}  // namespace cermet::gemm
