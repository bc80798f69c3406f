// From one descriptor of quantized tensors to the other.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "quant/assemble.hpp"

namespace cermet {

struct ConvertResult {
  std::int64_t tensors = 0, bytes = 0;
  std::vector<std::string> rounded;  ///< with ExportOptions::allow_rounding: what the target could hold rounded only
};

/// Writes a quantized checkpoint in the other format: codes and scales are the same bits, and back again gives the same tensors. Throws Error naming the tensor
/// or module that the target cannot hold (see to_modelslim and from_modelslim), where the folder is not quantized or has that format already, or where `out`
/// holds something. On any failure nothing is left under `out`.
ConvertResult convert(const std::filesystem::path& folder, const std::filesystem::path& out, const ExportOptions& options);

}  // namespace cermet
