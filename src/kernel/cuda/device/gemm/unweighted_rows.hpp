// Parameters of the rows of a grouped product that no weight multiplies: host and device.
#pragma once

#include "kernel/cuda/device/tile/epilogue.hpp"

namespace cermet::gemm {

inline constexpr int unweighted_threads = 256;
/// Neighbouring columns of a thread.
inline constexpr int unweighted_run = 8;

struct UnweightedParams {
  const void* offsets;  ///< [groups + 2]: the last but one is the first of these rows
  epilogue::ResultRows to;
  epilogue::Operand extra[epilogue::most_extras];
  int32_t groups;  ///< with a weight
  int32_t rows, columns;
  bool vectors;  ///< runs of results, and of what the epilogue reads, are aligned
};

}  // namespace cermet::gemm
