// What quantizing a layer found and decided: the figures for reports and the choice of schemes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "io/json_file.hpp"
#include "io/json_value.hpp"
#include "model/linear_scheme.hpp"

namespace cermet {

/// Errors are relative output errors on held-out rows: |y - y'|^2 / |y|^2 over all outputs of the module, y with the
/// weights and inputs of the checkpoint's type and y' with the quantized ones.
struct ModuleResult {
  std::string name;
  LinearScheme scheme;
  double error = 0;                      ///< of `scheme`; 0 where the module stays as it is
  std::map<std::string, double> errors;  ///< by the scheme's name; empty where no held-out row reaches the module
  std::string anti_outlier;              ///< "none", "clamp", "smooth" or "both": what was done to the input
  double alpha = 0;                      ///< exponent of the smoothing; 0 where there is none
  double absmax_before = 0;              ///< of the input, in the calibration
  double absmax_after = 0;               ///< after smoothing, and with a static scale at most what it represents
  double percentile = 0;                 ///< of the input's absolute values before, at the option's percentage
  double threshold = 0;                  ///< where a clamped input saturates; 0 where it is not clamped
  double input_scale = 0;                ///< static; 0 where there is none
  double clip_ratio = 1;    ///< mean over the rows of the weight: searched scale / scale of the largest value
  std::int64_t tokens = 0;  ///< calibration tokens that the statistics saw
  bool fallback = false;    ///< an expert that too few tokens reached: rounded to nearest, without search
};

struct LayerResult {
  std::int64_t layer = 0;
  /// |h - h'|^2 / |h - x|^2 over held-out tokens: x the layer's input, h its output in the checkpoint's type and h' its
  /// output when quantized.
  double output_error = 0;
  std::vector<ModuleResult> modules;  ///< in the order in which a forward pass meets them, routers left out
  std::vector<std::int64_t>
      expert_tokens;  ///< calibration tokens that each expert of a mixture got; empty for other layers

  JsonValue to_value() const;
  std::string to_json() const;
  /// Inverse of to_json(). `file` stands for the text in messages; throws Error(invalid_file) naming file and field.
  static LayerResult from_json(std::string_view text, std::string_view file);
  /// The same from an object inside a larger document.
  static LayerResult from_json(const Json& object);
};

}  // namespace cermet
