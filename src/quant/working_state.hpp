// The working folder of a run that can be interrupted: what identifies the run, and which layers are done.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "io/posix_file.hpp"
#include "model/checkpoint/checkpoint.hpp"
#include "quant/pipeline.hpp"

namespace cermet {

/// What two runs must have in common for one to go on where the other stopped, as JSON: tool, options that change
/// results, policy, prompts, and name, size and time of change of every file that weights come from. Threads are not
/// among them.
std::string fingerprint(const QuantizeOptions& options, const Checkpoint& checkpoint);

class WorkingState {
 public:
  /// Creates the folder, or opens that of an interrupted run and removes what it left unfinished. Throws
  /// Error(invalid_argument) where the folder belongs to another run, naming what differs, Error(io) where it cannot be
  /// written or another process works in it.
  WorkingState(const QuantizeOptions& options, const Checkpoint& checkpoint);

  const std::filesystem::path& folder() const { return folder_; }
  /// Figures of the layers that are complete, the first ones.
  const std::vector<LayerResult>& results() const { return results_; }
  /// The hidden states after the layers that are complete, [elements]; nothing before the first and after the last.
  std::vector<float> load_hidden(std::int64_t elements) const;

  /// Marks the next layer complete: its file is there. `hidden`, the states after it, is empty for the last one.
  void complete(const LayerResult& result, std::span<const float> hidden);

 private:
  std::filesystem::path hidden_file(std::int64_t layer) const;
  void read_results(std::int64_t layers);
  void remove_leftovers() const;
  void remove_contents() const;

  std::filesystem::path folder_;
  std::optional<FolderLock> lock_;
  std::vector<LayerResult> results_;
  std::int64_t layers_;
};

}  // namespace cermet
