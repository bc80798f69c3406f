// Host half that the attention kernels share: operands of both operators as one set of parameters.
#pragma once

#include "base/device_limits.hpp"
#include "kernel/cuda/device/attention/attention_params.hpp"
#include "kernel/kernel.hpp"

namespace cermet::cuda {

/// What a problem of flash_attention or incre_flash_attention says about shapes and types.
struct AttentionProblem {
  bool paged;
  std::int64_t tokens, heads, kv_heads, head_size, value_size,
      sequences;                                ///< tokens and sequences at the symbols' maximum
  std::int64_t block = 0, pages = 0, keys = 0;  ///< keys: most that a sequence can have
  DType q, kv, out;
  bool has_scales;
  bool columns;       ///< values are in columns (format/value_columns.hpp)
  bool token_scales;  ///< some scales are those of tokens, rather than of heads
  bool has_bounds;
  bool plain;  ///< scores are dot products times the scale: neither softcap nor alibi

  explicit AttentionProblem(const Problem& problem);
  std::int64_t group() const { return heads / kv_heads; }
};

/// Attributes, read when a kernel is bound; turns a launch's operands into parameters.
class AttentionLaunch {
 public:
  explicit AttentionLaunch(const Problem& problem);
  /// Of a launch for all sequences with at least this many queries.
  attention::Params params(const LaunchArgs& args, std::int32_t least_queries = 0) const;
  /// Tiles that the rows (queries times the group) of all sequences can make together; what a launch's geometry may
  /// depend on.
  static std::int64_t most_tiles(const attention::Params& params, std::int64_t group, std::int64_t rows);

 private:
  bool paged_, heads_first_, causal_;
  float scale_, softcap_;
  std::int32_t window_, window_after_;
};

/// Whether values are the first columns of the keys, in the same memory.
bool has_values_in_keys(const attention::Params& params);

/// Launches a task for the sequences that have at least this many queries.
using QueriesLauncher = std::function<void(const LaunchArgs&, std::int32_t least_queries)>;

namespace attention_general_file {
extern const Kernel attention_general_paged, attention_general_ragged;
}
using attention_general_file::attention_general_paged, attention_general_file::attention_general_ragged;

/// Launches the task that takes every problem, which is number `program` of the kernel's.
QueriesLauncher bind_general_attention(const Problem& problem, std::size_t program, const Config& config = {});

/// Tasks for many queries of a paged cache: on the tensor cores where the problem fits them, with the general task as
/// the fallback for rows that are not aligned.
std::vector<Program> many_query_programs(const Problem& problem);
/// Launches one of those, which are numbers `first` on of the kernel's.
QueriesLauncher bind_many_queries(const Problem& problem, std::size_t first);

/// Modelled seconds of the first of those that takes a problem.
double many_query_seconds(const Problem& problem, const DeviceLimits& limits);
/// Row tiles of a launch, and the keys that each of them meets; all sequences are taken to be alike.
struct AttentionTiles {
  std::int64_t count;
  double keys;
};
AttentionTiles attention_tiles(const Problem& problem, std::int64_t rows);
/// Cycles that a launch takes whatever it does.
inline constexpr double attention_cycles = 3500;
/// Modelled seconds of a task that takes `cycles_per_score` cycles of an SM for a score, of row tiles of `rows` rows,
/// unless reading takes longer.
double attention_seconds(const Problem& problem, std::int64_t rows, double cycles_per_score,
                         const DeviceLimits& limits);

/// Whether all rows of the last dimension start at multiples of 16 bytes.
bool rows_aligned(const TensorView& view);

/// The tokens that lead several tensors, in slabs within which every tensor's tokens are evenly spaced; usually there
/// is one slab.
class TokenSlabs {
 public:
  /// `axes` leading axes, the same of all `views`, count the tokens.
  TokenSlabs(std::initializer_list<const TensorView*> views, int axes);
  std::int64_t tokens() const { return tokens_; }
  std::int64_t slab() const { return slab_; }
  /// Elements from one token to the next within a slab.
  std::int64_t step(const TensorView& view) const { return inner_ < 0 ? 0 : view.strides[inner_]; }
  /// Address of the slab that starts at this token.
  std::byte* address(const TensorView& view, std::int64_t token) const;

 private:
  std::int64_t tokens_ = 1, slab_ = 1;
  int inner_ = -1, outer_axes_;  ///< innermost axis that is not 1; axes that count slabs
};

}  // namespace cermet::cuda
