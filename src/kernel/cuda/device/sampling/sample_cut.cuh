// How sample cuts a row off: the rank of the last token that top_k and top_p keep. Tokens are binned by their distance
// from the largest; the bin in which the wanted count or weight is reached is found from sums over bins, and its tokens
// are ranked against each other.
#pragma once

#include "kernel/cuda/device/sampling/group.cuh"
#include "kernel/cuda/device/sampling/sample.hpp"
#include "op/sampling.hpp"

namespace cermet::sample {

template <Config C, class Team>
struct Cut {
  using Group = cermet::Group<Team>;
  static constexpr int share = static_cast<int>(div_up(div_up(C.vocabulary, C.cluster), 32) * 32);  // tokens of a block
  static constexpr int warp_share =
      static_cast<int>(div_up(div_up(share, Team::warps), 32) * 32);  // tokens of a warp, in the order of ids
  static constexpr int own_bins = bins / C.cluster, thread_bins = max_of(1, own_bins / C.threads);
  static_assert(Team::size == C.threads && Team::cluster == C.cluster);
  static_assert(own_bins % C.threads == 0 || C.threads % own_bins == 0);

  struct Found {
    uint64_t bin, before;  ///< where the target is reached, and what was reached before that bin
    uint64_t cut;          ///< rank of the last token
    uint32_t count;        ///< candidates
  };
  struct Shared {
    uint64_t weight[bins];
    uint64_t candidate[candidates];  ///< ranks; those of the first block serve the group
    uint32_t count[bins];
    GroupScratch group;
    Found found;
    uint64_t token;  ///< the result
    uint64_t warp_weight[32];
  };
  static_assert(sizeof(Shared) <= fixed_shared_bytes);

  /// A row while a token is drawn from it.
  struct Row {
    Shared& s;
    Group& group;
    float* x;        ///< [size]: penalised logits, then divided by the temperature, then exponentials of what is kept
    uint32_t first;  ///< id of x[0]
    int size;        ///< tokens of this block
    float largest = 0;

    CERMET_DEVICE uint64_t rank(int i) const { return sampling_rank(x[i], first + static_cast<uint32_t>(i)); }
    CERMET_DEVICE uint64_t weight(int i) const { return sampling_weight(sampling_exp(x[i] - largest)); }
    static CERMET_DEVICE float scaled_of(uint64_t rank) {
      return value_of_order_key(static_cast<uint32_t>(rank >> 32));
    }
    CERMET_DEVICE uint64_t weight_of(uint64_t rank) const {
      return sampling_weight(sampling_exp(scaled_of(rank) - largest));
    }
    CERMET_DEVICE int bin(int i) const {
      const float distance = (largest - x[i]) * 64.0f;
      return distance < bins - 1 ? static_cast<int>(distance) : bins - 1;
    }
    /// Calls body(i) for this block's tokens: every thread for its own, a warp's in the order of ids.
    template <int Unroll = 1, class Body>
    CERMET_DEVICE void for_tokens(Body&& body) const {
      const int begin = static_cast<int>(Team::warp()) * warp_share, end = min_of(begin + warp_share, size);
#pragma unroll Unroll
      for (int i = begin + static_cast<int>(lane_index()); i < end; i += 32) body(i);
    }
  };

  /// The bin in which the running sum of `sums` over the group's bins reaches target > 0, and the sum before it; all
  /// blocks have filled `sums`.
  template <class Number>
  static __device__ Found find_bin(Row& row, const Number* sums, uint64_t target) {
    Shared& s = row.s;
    row.group.barrier();
    const int first = static_cast<int>(Group::rank()) * own_bins + static_cast<int>(Team::rank()) * thread_bins;
    uint64_t of_bin[thread_bins], sum = 0;
#pragma unroll
    for (int i = 0; i < thread_bins; ++i) {
      of_bin[i] = 0;
      if (static_cast<int>(Team::rank()) >= own_bins) continue;
#pragma unroll
      for (uint32_t r = 0; r < C.cluster; ++r) of_bin[i] += Group::read(&sums[first + i], r);
      sum += of_bin[i];
    }
    uint64_t total;
    const uint64_t before_thread = row.group.block_scan(sum, total);
    const uint64_t* slot = row.group.publish(total);
    uint64_t before_block = 0;
    uint32_t holder = 0;  // the block whose bins reach the target
    for (uint32_t r = 0; r < C.cluster; ++r) {
      const uint64_t other = Group::read(slot, r);
      if (before_block + other >= target) break;
      before_block += other;
      ++holder;
    }
    // A target that no sum reaches cannot be: it is at most the total.
    if (holder == Group::rank()) {
      uint64_t before = before_block + before_thread;
#pragma unroll
      for (int i = 0; i < thread_bins; ++i) {
        if (before < target && before + of_bin[i] >= target) {
          s.found.bin = static_cast<uint64_t>(first + i);
          s.found.before = before;
        }
        before += of_bin[i];
      }
    }
    row.group.barrier();
    Found found{};
    found.bin = Group::read(&s.found.bin, min_of<uint32_t>(holder, C.cluster - 1));
    found.before = Group::read(&s.found.before, min_of<uint32_t>(holder, C.cluster - 1));
    return found;
  }

  /// The largest rank c such that the tokens of `bin` ranked c or higher reach `target` together, by weight or by
  /// count.
  template <bool ByWeight>
  static __device__ uint64_t cut_in_bin(Row& row, int bin, uint64_t target) {
    Shared& s = row.s;
    if (Team::rank() == 0) s.found.count = 0;
    row.group.barrier();
    row.for_tokens([&](int i) {
      if (row.bin(i) != bin) return;
      if constexpr (C.cluster > 1) {
        const uint32_t at = ptx::add_cluster_u32(ptx::cluster_address(&s.found.count, 0), 1);
        if (at < candidates) ptx::store_cluster_u64(ptx::cluster_address(&s.candidate[at], 0), row.rank(i));
      } else {
        const uint32_t at = atomicAdd(&s.found.count, 1u);
        if (at < candidates) s.candidate[at] = row.rank(i);
      }
    });
    row.group.barrier();
    const uint32_t count = Group::read(&s.found.count, 0);
    if (count > candidates) return bisect<ByWeight>(row, bin, target);
    if (Group::rank() == 0) {
      for (uint32_t c = Team::rank(); c < count; c += C.threads) {
        const uint64_t mine = s.candidate[c];
        uint64_t above = 0;
        for (uint32_t o = 0; o < count; ++o) {
          const uint64_t other = s.candidate[o];
          if (other > mine) above += ByWeight ? row.weight_of(other) : 1;
        }
        if (above < target && above + (ByWeight ? row.weight_of(mine) : 1) >= target) s.found.cut = mine;
      }
    }
    row.group.barrier();
    return Group::read(&s.found.cut, 0);
  }

  /// The same for a bin with more tokens than can be listed (many equal logits): bit by bit, a pass over the row for
  /// each.
  template <bool ByWeight>
  static __device__ uint64_t bisect(Row& row, int bin, uint64_t target) {
    uint64_t high = 0, low = 0;  // the largest rank, and the largest of the complements
    row.for_tokens([&](int i) {
      if (row.bin(i) != bin) return;
      high = max_of(high, row.rank(i));
      low = max_of(low, ~row.rank(i));
    });
    high = row.group.template reduce<MaxU64>(high);
    low = ~row.group.template reduce<MaxU64>(low);
    const int equal = high == low ? 64 : __clzll(static_cast<long long>(high ^ low));
    uint64_t cut = equal == 0 ? 0 : high & ~(equal == 64 ? 0 : ~uint64_t{0} >> equal);
    for (int bit = 63 - equal; bit >= 0; --bit) {
      const uint64_t candidate = cut | uint64_t{1} << bit;
      uint64_t reached = 0;
      row.for_tokens([&](int i) {
        if (row.bin(i) == bin && row.rank(i) >= candidate) reached += ByWeight ? row.weight(i) : 1;
      });
      if (row.group.template reduce<SumU64>(reached) >= target) cut = candidate;
    }
    return cut;
  }

  /// Rank of the last token that top_k keeps; 0 where it keeps all that weighs anything.
  static __device__ uint64_t top_k_cut(Row& row, int32_t top_k) {
    Shared& s = row.s;
    for (int i = static_cast<int>(Team::rank()); i < bins; i += C.threads) s.count[i] = 0;
    Team::sync();
    row.for_tokens([&](int i) { atomicAdd(&s.count[row.bin(i)], 1u); });
    const Found found = find_bin(row, s.count, static_cast<uint64_t>(top_k));
    if (found.bin == bins - 1) return 0;
    return cut_in_bin<false>(row, static_cast<int>(found.bin), static_cast<uint64_t>(top_k) - found.before);
  }

  /// Rank of the last token that top_p keeps of those ranked `cut` or higher.
  static __device__ uint64_t top_p_cut(Row& row, float top_p, uint64_t cut) {
    Shared& s = row.s;
    for (int i = static_cast<int>(Team::rank()); i < bins; i += C.threads) s.weight[i] = 0;
    Team::sync();
    uint64_t sum = 0;
    row.for_tokens([&](int i) {
      if (row.rank(i) < cut) return;
      const uint64_t weight = row.weight(i);
      sum += weight;
      if (weight > 0)
        atomicAdd(reinterpret_cast<unsigned long long*>(&s.weight[row.bin(i)]),
                  static_cast<unsigned long long>(weight));
    });
    const uint64_t total = row.group.template reduce<SumU64>(sum);
    const uint64_t wanted = max_of<uint64_t>(1, top_p_weight(total, top_p));  // at least one token
    const Found found = find_bin(row, s.weight, wanted);
    return max_of(cut, cut_in_bin<true>(row, static_cast<int>(found.bin), wanted - found.before));
  }
};

}  // namespace cermet::sample
