// The general GEMM as host and device see it: its configuration and its parameters. Steps and strides count elements.
#pragma once

#include "kernel/cuda/device/tile/epilogue.hpp"

namespace cermet::gemm {

struct GeneralConfig {
  DType a, b;
  DType offsets = {};                     ///< their type, where groups are found by offsets
  bool tensor = false;                    ///< on the tensor cores
  int block = 0;                          ///< rows and columns of a tile: 64 or 128
  int stages = 0;                         ///< of the tensor cores' operands in shared memory
  bool a_outer = false, b_outer = false;  ///< neighbours in memory are neighbours along m (n), not along k
  bool dual = false, grouped = false;
  bool blocked = false;  ///< scales change every 128 reduction steps

  template <class Visit>
  CERMET_HOST_DEVICE constexpr void fields(Visit&& visit) const {
    visit("a", a), visit("b", b), visit("offsets", offsets), visit("tensor", tensor), visit("block", block);
    visit("stages", stages), visit("a_outer", a_outer), visit("b_outer", b_outer), visit("dual", dual);
    visit("grouped", grouped), visit("blocked", blocked);
  }
};

/// A thread block of the general GEMM.
inline constexpr int general_threads = 256;

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
  RowOperand second;                  ///< the second result, where the epilogue gives two
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
