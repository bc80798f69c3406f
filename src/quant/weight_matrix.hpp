// A weight on its way through the quantizer: as stored, row by row as float32, and quantized.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/buffer.hpp"
#include "base/thread_pool.hpp"
#include "model/checkpoint/checkpoint.hpp"
#include "quant/quantization_grid.hpp"

namespace cermet {

/// Reads a tensor as it is stored, on all threads.
OwnedTensor read_tensor(const Checkpoint& checkpoint, const std::string& name, ThreadPool& pool);

/// Throws Error(invalid_file) naming file and tensor where it holds a value that is not finite. Reads it piece by
/// piece.
void check_finite(const Checkpoint& checkpoint, const std::string& name, ThreadPool& pool);

/// Factors of columns and rows that a weight is multiplied with before it is quantized; ones where empty.
struct WeightFactors {
  std::span<const float> columns, rows;
};

/// Row `row` of a matrix in f32, bf16 or f16, times its factors.
void widen_row(const TensorView& matrix, std::int64_t row, const WeightFactors& factors, std::span<float> destination);

/// The matrix or vector times its factors, rounded to its own type.
OwnedTensor scaled_tensor(const TensorView& tensor, const WeightFactors& factors, ThreadPool& pool);

/// Largest absolute value of each column.
std::vector<float> column_absmax(const TensorView& matrix, ThreadPool& pool);

struct QuantizedWeight {
  OwnedTensor quantized;      ///< i8 or f8_e4m3 [N, K]
  std::vector<float> scales;  ///< [N], as they read back from `scale_dtype`
  double clip_ratio = 1;      ///< mean of scale / scale of the row's largest value
};

/// Quantizes rows. Each row's scale is the one of a few clip ratios that minimises sum over k of importance[k] * (w -
/// scale * q)^2, measured with the scale as `scale_dtype` stores it; without an importance, that of the row's largest
/// value. A row of zeros has the scale 1.
QuantizedWeight quantize_weight(const TensorView& matrix, const WeightFactors& factors, const QuantizationGrid& grid,
                                DType scale_dtype, std::span<const float> importance, ThreadPool& pool);

/// A scale as `dtype` stores it: rounded to nearest, at least the smallest positive value. Throws Error(unsupported)
/// where the type does not reach.
float stored_scale(double scale, DType dtype);

}  // namespace cermet
