// What decoding attention whose warps share tiles of keys compiles and launches: several queries of a sequence, and
// heads too wide for a warp.
#pragma once

#include "kernel/cuda/attention/decode_shape.hpp"

namespace cermet::cuda {

/// Queries of a sequence that still count as few.
inline constexpr std::int32_t most_shared_queries = 16;

struct DecodeSharedShape {
  AttentionProblem a;
  int bytes;             ///< of a cached element
  bool strict;           ///< weights in two parts
  int query_parts;       ///< 16-bit numbers that an element of a query is multiplied as
  bool has_columns;      ///< warps have parts of the value columns, and share rows
  bool may_have_values;  ///< values may be the first columns of the keys, in the same memory, as MLA's are
  int rows, warps, unit_tiles, stages, blocks_each;  ///< blocks_each: thread blocks per SM; 0 where it does not fit

  explicit DecodeSharedShape(const Problem& p, const Config& config = {});
  std::int64_t shared_bytes(bool values_in_keys) const;
  std::int64_t blocks(const Target& target) const { return std::int64_t{target.multiprocessors} * blocks_each; }
  std::int64_t scratch_bytes(const Target& target) const {
    return attention::decode_scratch_bytes(static_cast<int>(blocks(target)), rows, static_cast<int>(a.value_size));
  }
  Program program(bool values_in_keys) const;

 private:
  static constexpr int column_parts = 4;
  int control_bytes() const;
};

Decline decode_shared_declines(const Problem& problem);
std::vector<Program> decode_shared_programs(const Problem& problem, const Config& config = {});
/// Launches one of those, which are numbers `first` on of the kernel's, for sequences of at most `most_queries`.
std::function<void(const LaunchArgs&, std::int32_t most_queries)> bind_decode_shared(const Problem& problem,
                                                                                     std::size_t first,
                                                                                     const Config& config = {});
double decode_shared_seconds(const Problem& problem, const DeviceLimits& limits);

}  // namespace cermet::cuda
