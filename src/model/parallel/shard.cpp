#include "model/parallel/shard.hpp"

#include <algorithm>

#include "base/checked.hpp"
#include "base/error.hpp"
#include "model/linear_modules.hpp"

namespace cermet {
namespace {

using Role = LinearModule::Role;
using Segment = TensorPart::Segment;

/// Shares of inner dimensions that do not divide are multiples of this, so that kernels' fast paths take them.
constexpr std::int64_t inner_unit = 16;

std::int64_t inner_share(std::int64_t size, ModelShard shard) {
  if (size % shard.ranks == 0) return size / shard.ranks;
  const std::int64_t share = div_up(size, shard.ranks);
  return size >= inner_unit * shard.ranks ? round_up(share, inner_unit) : share;
}

/// Elements [first, first + count) of `size`, with zeros for those beyond.
TensorPart padded(int axis, std::int64_t first, std::int64_t count, std::int64_t size) {
  TensorPart part{axis, {}};
  const std::int64_t stored = std::clamp<std::int64_t>(size - first, 0, count);
  if (stored > 0) part.segments.push_back({first, stored});
  if (stored < count) part.segments.push_back({-1, count - stored});
  return part;
}

TensorPart share_of(int axis, std::int64_t size, std::int64_t count, ModelShard shard) { return padded(axis, shard.rank * count, count, size); }

/// Heads of keys that a rank's heads of queries read: `kv_heads` of the rank's configuration, each for as many of its heads.
TensorPart key_part(const ModelConfig& whole, ModelShard shard) {
  const ModelConfig own = config_of(whole, shard);
  const std::int64_t group = whole.heads / whole.kv_heads, own_group = own.heads / own.kv_heads;
  TensorPart part{0, {}};
  for (std::int64_t i = 0; i < own.kv_heads; ++i) {
    const std::int64_t query = shard.rank * own.heads + i * own_group;
    part.segments.push_back({query < whole.heads ? query / group * whole.head_dim : -1, whole.head_dim});
  }
  return part;
}

}  // namespace

std::int64_t TensorPart::count() const {
  std::int64_t count = 0;
  for (const Segment& segment : segments) count += segment.count;
  return count;
}

void check_shard(const ModelConfig& config, const Quantization& quantization, ModelShard shard) {
  require(shard.ranks >= 1 && shard.rank >= 0 && shard.rank < shard.ranks, "tensor parallel: expected a rank in [0, ranks), found rank {} of {}", shard.rank,
          shard.ranks);
  if (quantization.packed.empty() || shard.ranks == 1) return;
  constexpr std::int64_t values_of_word = 4;
  const auto parts = module_parts(config, shard);
  for (const auto& [module, part] : parts) {
    if (part.axis != 1 || !quantization.packed.contains(module)) continue;
    for (const Segment& segment : part.segments)
      if (segment.count % values_of_word != 0)
        fail(Status::unsupported, "tensor parallel: {}: expected packed columns to be a multiple of {} on each of {} ranks, found {}", module, values_of_word,
             shard.ranks, segment.count);
  }
}

ModelConfig config_of(const ModelConfig& whole, ModelShard shard) {
  ModelConfig part = whole;
  if (shard.ranks == 1) return part;
  part.heads = div_up(whole.heads, shard.ranks);
  const std::int64_t group = whole.heads / whole.kv_heads;
  if (whole.kv_heads % shard.ranks == 0) part.kv_heads = whole.kv_heads / shard.ranks;
  else part.kv_heads = group % part.heads == 0 ? 1 : part.heads;
  part.intermediate_size = inner_share(whole.intermediate_size, shard);
  part.expert_intermediate_size = inner_share(whole.expert_intermediate_size, shard);
  return part;
}

std::int64_t vocabulary_part(const ModelConfig& whole, ModelShard shard) { return div_up(whole.vocab_size, shard.ranks); }

std::unordered_map<std::string, TensorPart> module_parts(const ModelConfig& whole, ModelShard shard) {
  const ModelConfig own = config_of(whole, shard);
  const TensorPart vocabulary = share_of(0, whole.vocab_size, vocabulary_part(whole, shard), shard);
  const TensorPart query = share_of(0, whole.heads * whole.head_dim, own.heads * own.head_dim, shard), key = key_part(whole, shard);
  std::unordered_map<std::string, TensorPart> parts{{"model.embed_tokens", vocabulary}};
  for (const LinearModule& module : linear_modules(whole)) {
    const std::int64_t inner = module.expert < 0 ? own.intermediate_size : own.expert_intermediate_size;
    switch (module.role) {
      case Role::qkv: parts.emplace(module.name, module.name.ends_with("q_proj") ? query : key); break;
      case Role::gate_up: parts.emplace(module.name, share_of(0, module.rows, inner, shard)); break;
      case Role::o: parts.emplace(module.name, share_of(1, module.columns, own.heads * own.head_dim, shard)); break;
      case Role::down: parts.emplace(module.name, share_of(1, module.columns, inner, shard)); break;
      case Role::head: parts.emplace(module.name, vocabulary); break;
      case Role::router: break;
    }
  }
  return parts;
}

}  // namespace cermet
