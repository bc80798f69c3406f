// Which scheme each linear module of a model has, and where quantized values and scales come from.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "model/config.hpp"
#include "model/linear_scheme.hpp"

namespace cermet {

struct StoredTensor;

/// Schemes by module; modules that are not here stay as they are.
using SchemeMap = std::unordered_map<std::string, LinearScheme>;

inline LinearScheme scheme_of(const SchemeMap& schemes, const std::string& module) {
  const auto found = schemes.find(module);
  return found == schemes.end() ? LinearScheme{} : found->second;
}

struct Quantization {
  /// How a checkpoint stores quantized values and scales. `none`: its weights are unquantized; modules with a scheme
  /// are quantized while they load, per row with absmax / 127.
  enum class Format : std::uint8_t { none, compressed_tensors, modelslim };
  Format format = Format::none;
  /// By the module's name in the checkpoint, "model.layers.0.self_attn.q_proj"; modules that are not here are
  /// unquantized.
  SchemeMap modules;
  /// Dynamically quantized int8 inputs: absmax / range is the scale. 127, as in other runtimes; with 127.5 the largest
  /// value lies halfway between two quantized values, and the last bit of a float decides.
  double range = 127;
  /// Modules whose int8 weights are packed four to an int32, "X.weight_packed" [N, K / 4], each as q + 128.
  std::unordered_set<std::string> packed = {};
  /// Modules whose weights are stored as real numbers beside their scales, as models that are not compressed have them:
  /// rounded while they load.
  std::unordered_set<std::string> dense = {};
  /// Offsets (zero points) of static inputs that have one, by module: q = x / scale + offset. As the checkpoint states
  /// them; filled by checked_quantization().
  std::unordered_map<std::string, float> input_offsets = {};

  /// The module's scheme.
  LinearScheme of(const std::string& module) const { return scheme_of(modules, module); }
  /// Quantized values and scales are tensors of the checkpoint.
  bool stored() const { return format != Format::none; }
};

/// The same scheme for every projection of attention, feed-forward parts and experts; routers, embeddings and the head
/// stay unquantized.
Quantization quantize_projections(const ModelConfig& config, const LinearScheme& scheme);

/// What a checkpoint's folder says: quant_model_description.json, or config.json's quantization_config; nothing where
/// there is neither. Reads no tensor. Throws Error naming file and field where it breaks its format or asks for
/// something that is not supported.
Quantization read_quantization(const std::filesystem::path& folder, const ModelConfig& config);

/// Takes what is stored for what the descriptor leaves open: weights that are packed, or not rounded yet; routers,
/// heads and experts that its targets name, though they have no scales, are unquantized, because they are no linear
/// modules where it was written. `find` gives a tensor or null.
void as_stored(Quantization& quantization, const ModelConfig& config,
               const std::function<const StoredTensor*(const std::string&)>& find);

/// Every tensor the architecture needs when its modules are quantized so, in the order in which a forward pass meets
/// them.
std::vector<ExpectedTensor> expected_tensors(const ModelConfig& config, const Quantization& quantization);

}  // namespace cermet
