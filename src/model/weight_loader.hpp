// From tensors of a checkpoint to weights of a graph: stacking, and conversion of element types.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>

#include "model/checkpoint.hpp"
#include "model/decoder.hpp"
#include "runtime/weights.hpp"

namespace cermet {

/// Checks that every tensor the architecture needs is there in its shape, and returns the narrowest type that holds them all exactly: bf16 or
/// f16 where all have it, else f32. Throws Error naming the tensor that is absent, of another shape or of an element type that is not real.
DType storage_type(const Checkpoint& checkpoint);

/// A loader for a graph's constants. `on_bytes` is told about every read. The checkpoint must outlive it.
LoadWeight make_weight_loader(const Checkpoint& checkpoint, std::unordered_map<std::string, WeightSource> sources, std::function<void(std::int64_t)> on_bytes);

}  // namespace cermet
