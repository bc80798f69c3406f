#include "model/parallel/module_parts.hpp"

#include <algorithm>
#include <utility>

#include "model/linear_modules.hpp"

namespace cermet {
namespace {

using Role = LinearModule::Role;
using Segment = TensorPart::Segment;

/// Elements [first, first + count) of `size`, with zeros for those beyond.
TensorPart padded(int axis, std::int64_t first, std::int64_t count, std::int64_t size) {
  TensorPart part{axis, {}};
  const std::int64_t stored = std::clamp<std::int64_t>(size - first, 0, count);
  if (stored > 0) part.segments.push_back({first, stored});
  if (stored < count) part.segments.push_back({-1, count - stored});
  return part;
}

TensorPart share_of(int axis, std::int64_t size, std::int64_t count, std::int64_t rank) {
  return padded(axis, rank * count, count, size);
}

/// Heads of keys that a rank's heads of queries read: `kv_heads` of the rank's configuration, each for as many of its
/// heads.
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

std::unordered_map<std::string, TensorPart> module_parts(const ModelConfig& whole, ModelShard shard) {
  const ModelConfig own = config_of(whole, shard);
  const TensorPart vocabulary = share_of(0, whole.vocab_size, vocabulary_part(whole, shard), shard.rank);
  const TensorPart query = share_of(0, whole.heads * whole.head_dim, own.heads * own.head_dim, shard.rank),
                   key = key_part(whole, shard);
  std::unordered_map<std::string, TensorPart> parts{{"model.embed_tokens", vocabulary}};
  for (const LinearModule& module : linear_modules(whole)) {
    const bool dense = module.expert < 0;
    const std::int64_t inner = dense ? own.intermediate_size : own.expert_intermediate_size,
                       rank = dense ? shard.rank : shard.rank_of_expert();
    switch (module.role) {
      case Role::qkv: parts.emplace(module.name, module.name.ends_with("q_proj") ? query : key); break;
      case Role::gate_up: parts.emplace(module.name, share_of(0, module.rows, inner, rank)); break;
      case Role::o:
        parts.emplace(module.name, share_of(1, module.columns, own.heads * own.head_dim, shard.rank));
        break;
      case Role::down: parts.emplace(module.name, share_of(1, module.columns, inner, rank)); break;
      case Role::head: parts.emplace(module.name, vocabulary); break;
      case Role::router: break;
    }
  }
  return parts;
}

}  // namespace cermet
