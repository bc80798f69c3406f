// all_to_all by row counts between GPUs that address each other's memory: its program and its parameters.
#pragma once

#include "kernel/cuda/device/peer/ragged.hpp"
#include "kernel/cuda/task.hpp"
#include "op/collective.hpp"

namespace cermet::cuda {

/// One rank's part: rows of x by receiver, and of y by sender, one part after another.
struct RaggedCall {
  int rank = 0, size = 1;
  const void* x = nullptr;
  void* y = nullptr;
  std::int64_t row_bytes = 0;
};

/// `channels`: at most, alike on all ranks, of `threads` threads each. Throws Error(invalid_argument) where operands
/// are not aligned to the words, 16 bytes at most, that their rows consist of.
peer::RaggedParams ragged_params(const peer::Link& link, const RaggedCall& call, const PairCounts& counts, int channels,
                                 int threads);

/// It moves words of any size.
Program peer_move_ragged(int threads);

}  // namespace cermet::cuda
