// Parameters of an all_to_all whose parts have sizes of their own.
#pragma once

#include "kernel/cuda/device/peer/link.hpp"

namespace cermet::peer {

/// Of each rank: where its part begins, and how many words it has.
struct RaggedPart {
  int64_t begin, words;
};

struct RaggedParams {
  Link link;
  const void* x;
  void* y;
  RaggedPart sent[most_ranks];      ///< of x, by receiver
  RaggedPart received[most_ranks];  ///< of y, by sender
  int64_t most;  ///< words of the largest part that leaves its rank, alike on every rank: channels share out as many of
                 ///< each part
  uint32_t channels;
  uint32_t word_bytes;  ///< 1, 2, 4, 8 or 16
};

}  // namespace cermet::peer
