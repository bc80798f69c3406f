// What `cermet inspect` says about a checkpoint: its parts and sizes, whether it has the tensors that its configuration
// needs, and what its data holds.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/thread_pool.hpp"
#include "model/checkpoint/checkpoint.hpp"

namespace cermet {

/// Tensors of one element type.
struct StorageTotal {
  DType dtype = DType::f32;
  std::int64_t tensors = 0, elements = 0, bytes = 0;
};

struct FileTotal {
  std::string name;
  std::int64_t tensors = 0, bytes = 0;  ///< bytes of the whole file
};

struct CheckpointReport {
  std::string architecture;
  std::int64_t tensors = 0, parameters = 0, bytes = 0;  ///< parameters: elements of all tensors; bytes: of tensor data
  std::int64_t active_parameters =
      0;  ///< expected parameters that are active per token: of the experts only those it is routed to
  std::vector<FileTotal> files;
  std::vector<StorageTotal> storage;  ///< largest first
  std::vector<std::pair<std::string, std::int64_t>>
      schemes;                        ///< of a quantized checkpoint: linear modules by the name of their scheme
  std::vector<std::string> problems;  ///< tensors that are absent, misshapen or of a type that cannot be computed with;
                                      ///< the model would not load
  std::vector<std::string> warnings;  ///< tensors that nothing reads, types unlike the configuration's
};

/// Reads headers only.
CheckpointReport report(const Checkpoint& checkpoint);

/// A tensor that holds values which are not finite.
struct NonFinite {
  std::string tensor, file;
  std::int64_t nan = 0, infinite = 0;  ///< elements
};

struct CheckpointCheck {
  CheckpointReport report;
  std::int64_t bytes_read = 0;
  std::vector<NonFinite> non_finite;  ///< sorted by tensor; legal in a file, rarely meant
  bool ok() const { return report.problems.empty(); }
};

struct CheckOptions {
  const std::atomic<bool>* cancelled = nullptr;  ///< checked between pieces; ends with Error(cancelled)
  std::function<void(std::int64_t, std::int64_t)> on_progress =
      {};  ///< bytes done and in total; called by the calling thread
};

/// Reads every byte of every tensor, counts NaN and infinity, and checks what a quantized checkpoint's scales say.
/// Throws Error where a file cannot be read.
CheckpointCheck check(const Checkpoint& checkpoint, ThreadPool& pool, const CheckOptions& options = {});

/// Counts of NaN and infinity among dense elements; zero for types that have none.
struct NonFiniteCount {
  std::int64_t nan = 0, infinite = 0;
};
NonFiniteCount count_non_finite(DType dtype, std::span<const std::byte> elements);

}  // namespace cermet
