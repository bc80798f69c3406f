// Which scheme each linear module of a model has, and where codes and scales come from.
#pragma once

#include <filesystem>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "model/config.hpp"
#include "model/linear_scheme.hpp"

namespace cermet {

struct Quantization {
  /// How a checkpoint stores codes and scales. `none`: it stores real weights alone; modules with a scheme are quantized while they load, rows with
  /// absmax / 127.
  enum class Format : std::uint8_t { none, compressed_tensors, modelslim };
  Format format = Format::none;
  /// By the module's name in the checkpoint, "model.layers.0.self_attn.q_proj"; modules that are not here are real.
  std::unordered_map<std::string, LinearScheme> modules;
  /// int8 codes of inputs that are quantized as they come: absmax / range is the scale. 127, as in other runtimes; with 127.5 the largest value lies
  /// between two codes, and the last bit of a float decides.
  double range = 127;
  /// Modules whose int8 codes are stored four to an int32, "X.weight_packed" [N, K / 4], as code + 128.
  std::unordered_set<std::string> packed = {};
  /// Fixed inputs whose code of 0 is not 0, by module: code = x / scale + offset. What the checkpoint states; filled by checked_quantization().
  std::unordered_map<std::string, float> input_offsets = {};

  /// The module's scheme.
  LinearScheme of(const std::string& module) const {
    const auto found = modules.find(module);
    return found == modules.end() ? LinearScheme{} : found->second;
  }
  /// Codes and scales are tensors of the checkpoint.
  bool stored() const { return format != Format::none; }
};

/// The same scheme for every projection of attention, feed-forward parts and experts; routers, embeddings and the head stay real.
Quantization quantize_projections(const ModelConfig& config, const LinearScheme& scheme);

/// Every linear module of a checkpoint: projections, routers and, where it is stored, the head.
std::vector<std::string> linear_module_names(const ModelConfig& config);

/// What a checkpoint's folder says: quant_model_description.json, or config.json's quantization_config; nothing where there is neither. Reads no
/// tensor. Throws Error naming file and field where it breaks its format or asks for something that is not supported.
Quantization read_quantization(const std::filesystem::path& folder, const ModelConfig& config);

/// Every tensor the architecture needs when its modules are quantized so, in the order in which a forward pass meets them.
std::vector<ExpectedTensor> expected_tensors(const ModelConfig& config, const Quantization& quantization);

}  // namespace cermet
