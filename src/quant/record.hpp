// How a quantized folder was made: `cermet_quantization.json`, which --check verifies the tensors against and reports
// are made from.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "quant/layer_result.hpp"

namespace cermet {

struct QuantizationRecord {
  std::string policy;        ///< the policy's text
  std::string anti_outlier;  ///< what was asked for: "none", "clamp", "smooth", "both", "auto"
  double clamp_percentile = 0;
  double range = 127.5;                  ///< absmax / range is an int8 scale
  std::int64_t prompts = 0, tokens = 0;  ///< of the calibration
  std::vector<LayerResult> layers;
  /// Tensors that the conversion could only hold rounded; empty elsewhere.
  std::vector<std::string> rounded;

  static constexpr const char* file_name = "cermet_quantization.json";
  std::string to_json() const;
  /// Reads FOLDER/cermet_quantization.json; nothing where there is none. Throws Error(invalid_file) naming file and
  /// field.
  static std::optional<QuantizationRecord> read(const std::filesystem::path& folder);
};

}  // namespace cermet
