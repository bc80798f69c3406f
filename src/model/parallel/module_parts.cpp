#include "model/parallel/module_parts.hpp"

#include <algorithm>
#include <utility>

#include "model/linear_modules.hpp"

namespace cermet {
namespace {

using Role = LinearModule::Role;

/// `count` of `size` elements for each rank, with zeros for those beyond.
TensorPart share_of(int axis, std::int64_t size, std::int64_t count, std::int64_t rank) {
  TensorPart part{axis, {}};
  const std::int64_t first = rank * count, stored = std::clamp<std::int64_t>(size - first, 0, count);
  if (stored > 0) part.segments.push_back({first, stored});
  if (stored < count) part.segments.push_back({-1, count - stored});
  return part;
}

/// Heads of keys that a rank's heads of queries read, each for as many of them.
TensorPart key_part(const Attention& whole, const Attention& own, std::int64_t rank) {
  const std::int64_t group = whole.heads / whole.kv_heads, own_group = own.heads / own.kv_heads;
  TensorPart part{0, {}};
  for (std::int64_t i = 0; i < own.kv_heads; ++i) {
    const std::int64_t query = rank * own.heads + i * own_group;
    part.segments.push_back({query < whole.heads ? query / group * whole.head_dim : -1, whole.head_dim});
  }
  return part;
}

}  // namespace

std::int64_t TensorPart::count() const {
  std::int64_t count = 0;
  for (const TensorPart::Segment& segment : segments) count += segment.count;
  return count;
}

std::unordered_map<std::string, TensorPart> module_parts(const DecoderModel& whole, ModelShard shard) {
  const DecoderModel own = sharded(whole, shard);
  const std::vector<LinearModule> modules = linear_modules(whole), own_modules = linear_modules(own);
  const TensorPart vocabulary = share_of(0, whole.embedding.rows, own.embedding.rows, shard.rank);
  std::unordered_map<std::string, TensorPart> parts{{whole.embedding.name, vocabulary}};
  for (std::size_t i = 0; i < modules.size(); ++i) {
    const LinearModule &module = modules[i], &part = own_modules[i];
    const std::int64_t rank = module.expert < 0 ? shard.rank : shard.rank_of_expert();
    switch (module.role) {
      case Role::qkv: {
        const auto layer = static_cast<std::size_t>(module.layer);
        const auto &attention = *find_body<Attention>(whole.layers[layer]),
                   &own_attention = *find_body<Attention>(own.layers[layer]);
        parts.emplace(module.name, module.name == attention.q.name ? share_of(0, module.rows, part.rows, rank)
                                                                   : key_part(attention, own_attention, rank));
        break;
      }
      case Role::gate_up: parts.emplace(module.name, share_of(0, module.rows, part.rows, rank)); break;
      case Role::o:
      case Role::down: parts.emplace(module.name, share_of(1, module.columns, part.columns, rank)); break;
      case Role::head: parts.emplace(module.name, vocabulary); break;
      case Role::router: break;
    }
  }
  return parts;
}

}  // namespace cermet
