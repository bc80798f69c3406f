// The file of a layer's final tensors.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "base/thread_pool.hpp"
#include "io/safetensors.hpp"
#include "model/checkpoint/checkpoint.hpp"
#include "quant/policy.hpp"

namespace cermet {

class LayerWriter {
 public:
  /// Plans the tensors of a layer: those of the checkpoint, and for quantized modules quantized values and scales in
  /// place of the weight. Throws Error(io) where the disk is full.
  LayerWriter(const std::filesystem::path& file, const Checkpoint& checkpoint, std::int64_t layer,
              std::span<const LinearModule> modules, const Policy& policy);

  /// Checkpoint tensors of the layer that nothing was written for yet, in their order.
  std::vector<std::string> unwritten() const;
  void put(const std::string& name, std::span<const std::byte> bytes, ThreadPool& pool);
  /// Values in the tensor's own real type, to which they are rounded.
  void put_scales(const std::string& name, std::span<const float> scales, ThreadPool& pool);
  void commit() { writer_->commit(); }

 private:
  std::vector<TensorSpec> specs_;
  std::map<std::string, std::size_t> index_;
  std::vector<bool> written_;
  std::unique_ptr<SafetensorsWriter> writer_;
};

/// The tensors of one layer in a checkpoint.
std::vector<ExpectedTensor> layer_tensors(const ModelConfig& config, std::int64_t layer);

}  // namespace cermet
