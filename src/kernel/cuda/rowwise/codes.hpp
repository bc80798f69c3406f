// What the host halves of row kernels with quantized results share.
#pragma once

#include <string>

#include "op/quantization.hpp"

namespace cermet::cuda {

/// How a kernel's rows are quantized.
struct RowCodes {
  CodeFormat format;
  bool exact = true;  ///< no quantized value may differ by a step

  bool groups() const { return format.group != 0; }  ///< scales have a dimension of groups
  /// Columns of a row that share a scale; 0: all of them.
  std::int64_t group(std::int64_t columns) const { return columns > 0 && format.group >= columns ? 0 : format.group; }
  /// The device's Quantization, "{.format = {..}, ..}".
  std::string text(std::int64_t columns) const;
};

}  // namespace cermet::cuda
