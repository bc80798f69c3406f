// Writing a checkpoint's tensors as shards with an index, one tensor in memory at a time, and the small files beside
// them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "io/safetensors.hpp"

namespace cermet {

/// A tensor to be written: its bytes are those of a stored tensor, or lie in memory.
struct OutputTensor {
  TensorSpec spec;
  const SafetensorsFile* file = nullptr;  ///< null: `bytes` has the content
  const StoredTensor* stored = nullptr;   ///< in `file`
  std::vector<std::byte> bytes;
  bool flips_signs =
      false;  ///< int8 values as value + 128, or back: the other of the two that a packed tensor and a plain one hold

  std::int64_t size() const { return file ? stored->bytes() : static_cast<std::int64_t>(bytes.size()); }
};

/// A stored tensor under a name; its own where none is given.
OutputTensor copy_of(const SafetensorsFile& file, const StoredTensor& stored, std::string_view name = {});

/// Packs a quantized weight of int8 as compressed-tensors does, four values to an int32, without reading it:
/// "X.weight_packed" [N, K / 4] and "X.weight_shape". K must be a multiple of 4.
std::vector<OutputTensor> packed(OutputTensor weight);
/// The inverse, of "X.weight_packed" with rows that are not padded.
OutputTensor unpacked(OutputTensor packed);

struct ShardOptions {
  std::string stem = "model";  ///< files are called STEM.safetensors or STEM-00001-of-00002.safetensors
  std::int64_t max_file_bytes = std::int64_t{4} << 30;  ///< of tensor data; a larger tensor gets a file of its own
  const std::atomic<bool>* cancelled = nullptr;         ///< checked between pieces; ends with Error(cancelled)
  std::function<void(std::int64_t, std::int64_t)> on_progress = {};  ///< bytes done and in total
};

/// Writes the tensors in order and, where they are several files, STEM.safetensors.index.json. The bytes depend on the
/// tensors and the file size alone. Returns the number of files. Throws Error for a full disk or a source that was
/// changed.
std::int64_t write_shards(const std::filesystem::path& folder, const std::vector<OutputTensor>& tensors,
                          const ShardOptions& options);

/// Copies what a model's folder has besides tensors and config.json: tokenizer, generation settings, chat templates,
/// licences.
void copy_side_files(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace cermet
