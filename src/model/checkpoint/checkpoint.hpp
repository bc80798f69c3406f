// A checkpoint: a folder with config.json and its tensors in one or several safetensors files.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/safetensors.hpp"
#include "model/checkpoint/quantization.hpp"

namespace cermet {

class Checkpoint {
 public:
  /// Opens the configuration, then model.safetensors or the files that model.safetensors.index.json names (of a
  /// ModelSlim checkpoint quant_model_weights.safetensors, or its index), and validates every header; reads no tensor
  /// data. Throws Error naming file and what is wrong.
  static Checkpoint open(const std::filesystem::path& folder);
  Checkpoint(Checkpoint&&) noexcept;
  Checkpoint& operator=(Checkpoint&&) noexcept;
  ~Checkpoint();

  const ModelConfig& config() const;
  /// Schemes of its modules; nothing is known yet of the tensors (see checked_quantization).
  const Quantization& quantization() const;
  const std::filesystem::path& folder() const;
  std::int64_t total_bytes() const;  ///< of all tensors

  /// A tensor's type and place; null when there is none of that name.
  const StoredTensor* find(std::string_view name) const;
  /// The same; throws Error naming file, tensor, expected and found where it is absent, has another shape or is not
  /// f32, bf16 or f16.
  const StoredTensor& require(std::string_view name, std::span<const std::int64_t> shape) const;
  /// The same for a tensor of certain types.
  const StoredTensor& require(const ExpectedTensor& expected) const;
  /// All tensors, sorted by name.
  std::span<const StoredTensor> tensors() const;
  /// The safetensors files, in the order of their names.
  std::span<const SafetensorsFile> files() const;
  /// The file that one of tensors() lies in.
  const SafetensorsFile& file_of(const StoredTensor& tensor) const;
  /// Reads `destination.size()` bytes of one of tensors() from `byte_offset` on. Thread-safe.
  void read(const StoredTensor& tensor, std::int64_t byte_offset, std::span<std::byte> destination) const;

 private:
  struct State;
  explicit Checkpoint(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace cermet
