// Operands of GEMVs, matrix products of few rows.
#pragma once

#include "kernel/cuda/device/gemv/shape.hpp"
#include "kernel/cuda/device/mixture/gating.hpp"
#include "kernel/cuda/device/tile/epilogue.hpp"
#include "kernel/cuda/device/tile/rotation.hpp"

namespace cermet::gemv {

/// y[r, n] = epilogue(sum over k of x[r, k] * w[n, k]). Strides count elements; an operand that is not given is null,
/// and its stride 0 where one value serves all.
struct Params {
  const void* x;         ///< [rows, K]
  const void* w;         ///< [columns, K], or [groups, columns, K]
  const void* w_up;      ///< of the second product
  void* y;               ///< [rows, columns]
  void* also;            ///< the same of a second result, where the epilogue gives two
  const float* x_scale;  ///< of blocks of the reduction: [rows, blocks]
  const float* w_scale;  ///< [columns / 128, blocks]; for groups with their number as the first dimension
  const void* offsets;   ///< [groups + 1]: first row of each group
  int64_t x_stride, w_stride, w_group_stride, w_up_stride, y_stride, also_stride;
  int64_t x_scale_stride;                        ///< from row to row
  int64_t w_scale_stride, w_scale_group_stride;  ///< from w_scale_columns columns and from group to group
  int32_t x_scale_block, w_scale_block;          ///< from 128 reduction steps to the next
  int32_t w_scale_columns;
  int32_t rows, columns, groups;
  int32_t shares;       ///< blocks that share the columns of all rows
  int32_t share, rest;  ///< of their number for each block: quotient and remainder
  uint32_t inverse;     ///< of shares, as a fraction of 2^32: see share_begin()
  int32_t constant;     ///< whether no task writes the weights, so that they may be fetched before earlier tasks end

  /// What is done to a row of x before it is multiplied.
  const void* delta;        ///< [rows, K], added to x
  const void* norm_weight;  ///< [K]
  void* sum;                ///< [rows, K]: x + delta, for later operators
  void* normed;             ///< [rows, K]: what is multiplied, for later operators
  int64_t delta_stride, sum_stride, normed_stride;
  float epsilon, norm_offset;
  int32_t aligned;  ///< whether x and all of these rows begin at multiples of 16 bytes

  /// Of a mixture's rows.
  const void* ids;            ///< [tokens, choices]: experts, where the rows are sorted here
  int32_t* sorted_offsets;    ///< [groups + 1]: what sorting gives beside the rows
  int32_t* row_of;            ///< [tokens, choices]
  const void* row_of_choice;  ///< [choices]: which rows are added, and with what weights
  const float* weights;       ///< [choices]
  int64_t ids_stride, row_of_stride;
  int32_t choices;
  /// Of compact rows: what sums of a column are multiplied by. Strides of the weights count two bytes, as those of bf16
  /// do.
  const float *w_factors, *w_up_factors;
  int32_t early;  ///< whether the launch before has published the choices' rows and offsets, so that they may be read
                  ///< before it ends

  epilogue::Operand extra[epilogue::most_extras];  ///< last, so that parameters in use are neighbours

  /// Divides `count` results among blocks.
  constexpr void share_out(int64_t count, int64_t blocks) {
    shares = static_cast<int32_t>(blocks < most_shares ? blocks : most_shares);
    share = static_cast<int32_t>(count / shares);
    rest = static_cast<int32_t>(count % shares);
    inverse = inverse_of_shares(shares);
  }
};

/// With rope_and_cache behind the product: y are the rotated queries [rows, heads, head size], and columns count pairs
/// of columns.
struct RotatedParams : Params, rotation::Places {};

/// With topk_gating before the sorting: ids are null.
struct ChoosingParams : Params {
  gating::Params gating;
};

}  // namespace cermet::gemv
