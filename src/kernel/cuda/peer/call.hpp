// A collective call of GPUs that address each other's memory: the program that it takes, and its parameters.
#pragma once

#include <algorithm>

#include "kernel/cuda/device/peer/collective.hpp"
#include "kernel/cuda/task.hpp"
#include "op/collective.hpp"
#include "op/reduction.hpp"

namespace cermet::cuda {

/// One rank's part. Operand and result have pieces of `piece` elements; see op/collective.hpp.
struct PeerCall {
  Collective kind = Collective::all_reduce;
  int rank = 0, size = 1, root = 0;
  const void* x = nullptr;
  void* y = nullptr;
  std::int64_t piece = 0, element_bytes = 1;

  /// Bytes of the widest words, up to 16, that the pieces consist of. It follows from their size alone, because ranks
  /// share slots out by words: all memory of devices that graphs use is aligned to 16 bytes, and what is not is
  /// refused.
  std::int64_t word_bytes() const;
  /// Elements of a reduction's vectors.
  int width() const { return static_cast<int>(std::max<std::int64_t>(1, word_bytes() / element_bytes)); }
};

/// Whether the call's words can be stamped: they have 8 or 16 bytes, and every rank gives something to every other one.
bool can_be_stamped(const PeerCall& call);

/// `channels`: at most, alike on all ranks, of `threads` threads each. Throws Error(invalid_argument) where operands
/// are not aligned to their words. `protocol`: shares of all_reduce alone; where words cannot be stamped, they go once.
peer::Params peer_params(const peer::Link& link, const PeerCall& call, int channels, int threads,
                         peer::Protocol protocol);

/// The program that reduces this type in vectors of `width` elements, and the one that only moves words of any size.
Program peer_reduction(DType dtype, Reduction reduction, int ranks, int width, int threads);
Program peer_move(int threads);

}  // namespace cermet::cuda
