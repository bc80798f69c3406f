// The parts of linear modules that each rank holds.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "model/parallel/shard.hpp"

namespace cermet {

/// The part of a tensor that a rank holds along an axis: one segment after another.
struct TensorPart {
  struct Segment {
    std::int64_t begin = 0;  ///< in the stored tensor; nothing is stored where negative: zeros
    std::int64_t count = 0;
  };
  int axis = 0;
  std::vector<Segment> segments;

  std::int64_t count() const;
};

/// Parts of linear modules' weights, of every expert as if it were the rank's own, by the module's name
/// ("model.layers.0.mlp.down_proj", "model.embed_tokens"); modules that are whole everywhere are not in it. Along axis
/// 0 everything that is stored for each row is cut with it; along axis 1 the weight alone.
std::unordered_map<std::string, TensorPart> module_parts(const DecoderModel& whole, ModelShard shard);

}  // namespace cermet
