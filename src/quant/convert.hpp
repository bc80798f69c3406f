// Converts between the two descriptors of quantized tensors.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "quant/assemble.hpp"

namespace cermet {

struct ConvertResult {
  std::int64_t tensors = 0, bytes = 0;
  std::vector<std::string> rounded;  ///< with ExportOptions::allow_rounding: what the target could only hold rounded
};

/// Writes a quantized checkpoint in the other format: quantized values and scales are bit for bit the same, and
/// converting back gives the same tensors. Throws Error naming the tensor or module that the target cannot hold (see
/// to_modelslim and from_modelslim), where the folder is not quantized or has that format already, or where `out` holds
/// something. On any failure nothing is left under `out`.
ConvertResult convert(const std::filesystem::path& folder, const std::filesystem::path& out,
                      const ExportOptions& options);

}  // namespace cermet
