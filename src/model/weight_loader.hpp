// From stored tensors to weights of a graph: stacking, conversion of element types, quantization.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>

#include "model/checkpoint/checkpoint.hpp"
#include "model/decoder.hpp"
#include "runtime/weights.hpp"

namespace cermet {

/// Checks that every tensor the architecture needs is there in its shape, and returns the narrowest type that holds
/// them all exactly: bf16 or f16 where all have it, else f32. Throws Error naming the tensor that is absent, of another
/// shape or of an element type that is not real.
DType storage_type(const Checkpoint& checkpoint);

/// Stored tensors by name: a checkpoint's, or any others.
struct TensorReader {
  std::function<const StoredTensor*(std::string_view name)> find;  ///< null where there is none
  std::function<void(const StoredTensor& tensor, std::int64_t byte_offset, std::span<std::byte> destination)> read;
};
/// Those of a checkpoint, which must outlive the reader.
TensorReader reader_of(const Checkpoint& checkpoint);

/// A loader for a graph's constants. `on_bytes` is called for every tensor that was read. With a pool, pieces of a
/// large tensor are read and converted on all its threads, so the reader must be thread-safe; it must outlive the
/// loader.
LoadWeight make_weight_loader(TensorReader reader, std::unordered_map<std::string, WeightSource> sources,
                              std::function<void(std::int64_t)> on_bytes, ThreadPool* pool = nullptr);

}  // namespace cermet
