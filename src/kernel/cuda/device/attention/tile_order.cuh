// Row tiles in the order of the keys that they see, most first, so that a launch ends with short ones.
#pragma once

#include "kernel/cuda/device/attention/queries.cuh"
#include "kernel/cuda/device/task.cuh"

namespace cermet::attention {

/// Number of a block's item of a round, or -1. Every second round goes backwards over the blocks: the block with the
/// longest item of one has the shortest of the next.
CERMET_DEVICE int item_of_round(const BlockItems& items, uint32_t round) {
  const uint32_t begin = round * items.step;
  if (begin >= items.end) return -1;
  const uint32_t count = min_of(items.step, items.end - begin);
  if (items.first >= count) return -1;
  return static_cast<int>(begin + (round % 2 == 0 ? items.first : count - 1 - items.first));
}

/// The sequences of a launch, held by a warp: one in each lane. With more of them, tiles keep the order of their
/// sequences, from the last one on.
class TileOrder {
 public:
  /// Tiles have `tokens` tokens of a sequence. `quantum`: keys that are counted as one.
  CERMET_DEVICE TileOrder(const Params& p, int tokens, int block, int quantum) : tokens_(tokens), quantum_(quantum) {
    const int b = static_cast<int>(lane_index());
    if (p.sequences > 32 || b >= p.sequences) return;
    const Sequence s = sequence_of(p, b, block);
    queries_ = s.end - s.begin, keys_ = s.keys;
  }

  /// Place of the tile that is number `rank` of `all` by its keys.
  CERMET_DEVICE TilePlace place(const Params& p, int rank, int all, int block) const {
    if (p.sequences > 32) return place_of(p, all - 1 - rank, 1, tokens_, block != 0);
    const auto total = [&](int quanta) { return __reduce_add_sync(0xffffffffu, reaching(p.causal, quanta)); };
    if (rank >= total(0)) return {-1, 0};
    // More tiles than `rank` reach `low` quanta of keys, no more than that reach `high`.
    int low = 0, high = __reduce_max_sync(0xffffffffu, keys_) / quantum_ + 1;
#pragma unroll 1
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      if (total(middle) > rank) low = middle;
      else high = middle;
    }
    rank -= total(high);
    const int above = reaching(p.causal, high), count = reaching(p.causal, low) - above;
    int end = count;  // such tiles up to and with this lane's sequence
#pragma unroll 1
    for (int offset = 1; offset < 32; offset *= 2) {
      const int below = __shfl_up_sync(0xffffffffu, end, offset);
      if (static_cast<int>(lane_index()) >= offset) end += below;
    }
    const int owner = __ffs(static_cast<int>(__ballot_sync(0xffffffffu, rank < end))) - 1;
    const int tile = tiles() - 1 - above - (rank - (end - count));
    return {owner, __shfl_sync(0xffffffffu, tile, owner)};
  }

 private:
  CERMET_DEVICE int tiles() const { return (queries_ + tokens_ - 1) / tokens_; }
  /// Tiles of the lane's sequence that see so many quanta of keys: the last ones of a causal sequence.
  CERMET_DEVICE int reaching(bool causal, int quanta) const {
    const int count = tiles(), reach = quanta * quantum_;
    if (reach <= 0) return count;
    if (reach > keys_) return 0;
    if (!causal) return count;
    const int below = (reach - (keys_ - queries_) + tokens_ - 1) / tokens_ - 1;
    return count - max_of(0, min_of(below, count - 1));
  }

  int tokens_, quantum_, queries_ = 0, keys_ = 0;
};

}  // namespace cermet::attention
