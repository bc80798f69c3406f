// Host half that the attention kernels for batches of sequences of one length share.
#pragma once

#include "kernel/cuda/attention/attention_launch.hpp"
#include "kernel/cuda/device/attention/batched.hpp"
#include "op/attention.hpp"
#include "op/attention_layout.hpp"

namespace cermet::cuda {

/// What a flash_attention of rank 4 says about shapes and types, at the symbols' maximum.
struct BatchedProblem {
  BatchedAttention call;
  std::int64_t sequences, queries, keys, heads, kv_heads, head_size, value_size;
  DType type, out;  ///< type: of q, k and v
  bool steps;       ///< elements of a row of q, k or v may be apart
  bool plain;       ///< neither softcap nor alibi

  explicit BatchedProblem(const Problem& problem);
  std::int64_t group() const { return heads / kv_heads; }
};

/// ScoreConfig of device code, as text.
std::string score_config(const Problem& problem);

/// Attributes, read when a kernel is bound; turns a launch's operands into parameters.
class BatchedLaunch {
 public:
  explicit BatchedLaunch(const Problem& problem);
  /// Of row tiles of `rows` rows.
  attention::BatchedParams params(const LaunchArgs& args, std::int64_t rows) const;
  /// Work items: tiles of all sequences and key-value heads.
  static std::int64_t items(const LaunchArgs& args, const attention::BatchedParams& params);

 private:
  BatchedAttention call_;
  AttentionSettings settings_;
  std::int64_t group_;
  float masked_score_;
  bool zero_rows_;
};

namespace attention_batched_file {
extern const Kernel attention_batched_general;
}
/// Launches the task that takes every such problem, which is number `program` of the kernel's.
Launcher bind_batched_general(const Problem& problem, std::size_t program, const Config& config = {});

}  // namespace cermet::cuda
