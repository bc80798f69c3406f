// Random checkpoints of any supported configuration, streamed to disk: benchmarks and tests need no download.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>

#include "base/thread_pool.hpp"

namespace cermet {

struct SynthOptions {
  std::filesystem::path
      config_file;  ///< a config.json; its dtype is the weights' element type and its initializer_range their deviation
  std::filesystem::path out;  ///< folder to create; may exist if it is empty
  std::uint64_t seed = 0;
  std::int64_t max_file_bytes =
      std::int64_t{1} << 30;  ///< of tensor data in one safetensors file; a larger tensor gets a file of its own
  const std::atomic<bool>* cancelled = nullptr;  ///< checked between pieces; ends with Error(cancelled)
  std::function<void(std::int64_t, std::int64_t)> on_progress =
      {};  ///< bytes done and in total; called by the calling thread
};

struct SynthResult {
  std::int64_t tensors = 0, parameters = 0, bytes = 0, files = 0;
};

/// Writes config.json, the safetensors files and, where they are several, their index. Weights and biases are normal
/// with mean 0, norms with mean 1. The bytes depend on configuration, seed and file size alone, not on threads. Memory
/// stays at a piece of 256 KiB per thread. On any failure nothing is left under the folder's name. Throws Error for a
/// bad configuration (see load_config_file), an output folder that holds something, a full disk.
SynthResult write_random_checkpoint(const SynthOptions& options, ThreadPool& pool);

}  // namespace cermet
