#include "model/parallel/shard.hpp"

#include <algorithm>

#include "base/checked.hpp"
#include "base/error.hpp"
#include "model/linear_modules.hpp"

namespace cermet {
namespace {

using Role = LinearModule::Role;

void check_divides(std::string_view field, std::int64_t value, std::int64_t ranks) {
  if (value % ranks != 0) fail(Status::unsupported, "tensor parallel: expected {} to be a multiple of the {} ranks, found {}", field, ranks, value);
}

TensorPart equal_part(int axis, std::int64_t size, ModelShard shard) {
  const std::int64_t count = size / shard.ranks;
  return {axis, shard.rank * count, count, count};
}

/// Heads of keys: with fewer than ranks, neighbours share one.
TensorPart key_part(const ModelConfig& whole, ModelShard shard) {
  const std::int64_t heads = std::max<std::int64_t>(1, whole.kv_heads / shard.ranks), first = shard.rank * whole.kv_heads / shard.ranks;
  return {0, first * whole.head_dim, heads * whole.head_dim, heads * whole.head_dim};
}

TensorPart vocabulary(const ModelConfig& whole, ModelShard shard) {
  const std::int64_t count = vocabulary_part(whole, shard), begin = std::min(shard.rank * count, whole.vocab_size);
  return {0, begin, count, std::min(count, whole.vocab_size - begin)};
}

}  // namespace

void check_shard(const ModelConfig& config, const Quantization& quantization, ModelShard shard) {
  require(shard.ranks >= 1 && shard.rank >= 0 && shard.rank < shard.ranks, "tensor parallel: expected a rank in [0, ranks), found rank {} of {}", shard.rank,
          shard.ranks);
  check_divides("num_attention_heads", config.heads, shard.ranks);
  if (config.kv_heads % shard.ranks != 0 && shard.ranks % config.kv_heads != 0)
    fail(Status::unsupported, "tensor parallel: expected num_key_value_heads to be a multiple or a divisor of the {} ranks, found {}", shard.ranks,
         config.kv_heads);
  const bool mixture = std::ranges::find(config.sparse, true) != config.sparse.end(), dense = std::ranges::find(config.sparse, false) != config.sparse.end();
  if (dense) check_divides("intermediate_size", config.intermediate_size, shard.ranks);
  if (mixture) check_divides("moe_intermediate_size", config.expert_intermediate_size, shard.ranks);
  if (quantization.packed.empty()) return;
  constexpr std::int64_t values_of_word = 4;
  for (const LinearModule& module : linear_modules(config)) {
    const bool cut = module.role == Role::o || module.role == Role::down;
    if (cut && quantization.packed.contains(module.name) && module.columns / shard.ranks % values_of_word != 0)
      fail(Status::unsupported, "tensor parallel: {}: expected packed columns to be a multiple of {} on each of {} ranks, found {}", module.name,
           values_of_word, shard.ranks, module.columns / shard.ranks);
  }
}

ModelConfig config_of(const ModelConfig& whole, ModelShard shard) {
  ModelConfig part = whole;
  part.heads /= shard.ranks;
  part.kv_heads = std::max<std::int64_t>(1, whole.kv_heads / shard.ranks);
  part.intermediate_size /= shard.ranks;
  part.expert_intermediate_size /= shard.ranks;
  return part;
}

std::int64_t vocabulary_part(const ModelConfig& whole, ModelShard shard) { return div_up(whole.vocab_size, shard.ranks); }

std::unordered_map<std::string, TensorPart> module_parts(const ModelConfig& whole, ModelShard shard) {
  std::unordered_map<std::string, TensorPart> parts{{"model.embed_tokens", vocabulary(whole, shard)}};
  for (const LinearModule& module : linear_modules(whole)) {
    switch (module.role) {
      case Role::qkv:
        parts.emplace(module.name, module.name.ends_with("q_proj") ? equal_part(0, module.rows, shard) : key_part(whole, shard));
        break;
      case Role::gate_up: parts.emplace(module.name, equal_part(0, module.rows, shard)); break;
      case Role::o:
      case Role::down: parts.emplace(module.name, equal_part(1, module.columns, shard)); break;
      case Role::head: parts.emplace(module.name, vocabulary(whole, shard)); break;
      case Role::router: break;
    }
  }
  return parts;
}

}  // namespace cermet
