// What a checkpoint's config.json says, normalized: after parsing, no field depends on the spelling or the architecture
// that it came from.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/dtype.hpp"
#include "model/blocks.hpp"
#include "op/rope_table.hpp"

namespace cermet {

enum class Architecture : std::uint8_t {
#define X(name) name,
#include "model/arch/architectures.inc"
#undef X
};

struct ModelConfig {
  Architecture architecture{};
  std::string architecture_name;  ///< "Qwen3MoeForCausalLM"
  std::int64_t vocab_size = 0, hidden_size = 0, layers = 0;
  std::int64_t heads = 0, kv_heads = 0, head_dim = 0;
  std::int64_t intermediate_size = 0;  ///< of dense feed-forward layers
  std::int64_t max_position_embeddings = 0;
  double rms_norm_eps = 1e-6;
  RopeParameters rope;
  std::int64_t experts = 0, experts_per_token = 0;  ///< 0: no mixture
  std::int64_t expert_intermediate_size = 0;
  DecoderModel decoder;

  DType dtype = DType::f32;  ///< the checkpoint's stated element type
  std::optional<std::int32_t> bos_id;
  std::vector<std::int32_t> eos_ids;  ///< generation_config.json's where it names any, else config.json's
  double initializer_range = 0.02;
};

/// Parses and validates FOLDER/config.json (and generation_config.json where it exists). Throws Error naming file,
/// field, expected and found. Says nothing about quantization (see read_quantization).
ModelConfig load_config(const std::filesystem::path& folder);
/// The same for a config.json of any name, without a folder around it; one that is quantized is refused.
ModelConfig load_config_file(const std::filesystem::path& file);

/// Element types of weights and scales in files: those that operators compute in, and f64, which NumPy leaves and which
/// is rounded once while it loads.
inline constexpr DTypeSet stored_reals = dtypes::real | DTypeSet{DType::f64};

/// A tensor that a checkpoint of this configuration must have.
struct ExpectedTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  DTypeSet dtypes = stored_reals;
  bool is_parameter = true;  ///< a weight, quantized or not; else a scale, an offset or an int32 bias
  bool or_one = false;       ///< one element of any shape will do, and [N] for [N, 1]
  double mean = 0;           ///< of random weights
};

/// Every tensor the architecture needs when nothing is quantized, in the order in which a forward pass meets them.
std::vector<ExpectedTensor> expected_tensors(const ModelConfig& config);

}  // namespace cermet
