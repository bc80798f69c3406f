// Configuration and parameters of collectives between GPUs that address each other's memory.
#pragma once

#include "kernel/cuda/device/dtype.hpp"
#include "kernel/cuda/device/peer/link.hpp"
#include "kernel/cuda/device/reduce/reduce.hpp"

namespace cermet::peer {

struct ReductionConfig {
  DType type;
  reduce::Kind kind;
  int ranks;

  template <class Visit>
  constexpr void fields(Visit&& visit) const {
    visit("type", type), visit("kind", kind), visit("ranks", ranks);
  }
};

struct ReduceConfig {
  ReductionConfig reduction;
  int width;  ///< elements of a vector; divides the pieces, to whose size all is aligned

  template <class Visit>
  constexpr void fields(Visit&& visit) const {
    visit("reduction", reduction), visit("width", width);
  }
};

/// How data goes to other ranks.
enum class Protocol : uint32_t {
  once,     ///< each part to all that need it, then a flag
  stamped,  ///< the same in words with a stamp, which need no flag: sooner there, and twice the bytes. Where every rank
            ///< gives something to every other one, because a rank that takes nothing would not wait
  shares,   ///< of all_reduce: each rank reduces a share and gives it to all: less data, and twice the steps
};

/// One call. Operand and result have pieces of `piece` units: elements of reductions, words of what only moves.
struct Params {
  Link link;
  const void* x;
  void* y;
  int64_t piece;
  uint32_t channels;  ///< that share the pieces out
  uint32_t to;        ///< ranks that this one gives something, a bit each
  uint32_t from;      ///< ranks whose parts make this rank's result; none: zeros
  uint32_t cuts;      ///< rank r is given piece r, not all of a single one
  uint32_t joins;     ///< what rank r gave is piece r of the result
  Protocol protocol;
  uint32_t word_bytes;  ///< of what only moves: 1, 2, 4, 8 or 16
};

}  // namespace cermet::peer
