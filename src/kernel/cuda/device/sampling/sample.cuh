// sample: draws the next token of each sequence; the same bits as every other backend, because weights are integers (op/sampling.hpp).
//
// A group (a block or a cluster) keeps a row of scaled logits and finds the cut: the rank of the last token that top_k and top_p keep. Tokens are
// binned by their distance from the largest; the bin in which the wanted count or weight is reached is found from sums over bins, and its tokens
// are ranked against each other. Then the weights of what is kept are added in the order of ids, as far as the random number says.
#pragma once

#include "kernel/cuda/device/movement/axes.cuh"
#include "kernel/cuda/device/sampling/group.cuh"
#include "kernel/cuda/device/sampling/sample.hpp"
#include "op/sampling.hpp"

namespace cermet::sample {

struct Config {
  DType logits;
  int vocabulary;
  int threads, cluster;
  bool in_shared;  ///< a block's share of the row fits into shared memory
};

/// The parameters of a sequence; out of range ones give no token.
struct Settings {
  float temperature, top_p, min_p, penalty;
  int32_t top_k;

  __device__ Settings(const Params& p, uint32_t b)
      : temperature(p.temperature ? p.temperature[b] : 1.0f),
        top_p(p.top_p ? p.top_p[b] : 1.0f),
        min_p(p.min_p ? p.min_p[b] : 0.0f),
        penalty(p.penalty ? p.penalty[b] : 1.0f),
        top_k(p.top_k ? p.top_k[b] : 0) {}
  __device__ bool legal() const {
    return temperature >= 0 && temperature < infinity() && top_k >= 0 && top_p > 0 && top_p <= 1 && min_p >= 0 && min_p <= 1 && penalty > 0 &&
           penalty < infinity();
  }
};

template <Config C>
struct Task {
  using Params = sample::Params;
  using T = Element<C.logits>;
  using Group = cermet::Group<C.threads, C.cluster>;
  static constexpr int share = static_cast<int>(div_up(div_up(C.vocabulary, C.cluster), 32) * 32);  // tokens of a block
  static constexpr int warps = C.threads / 32;
  static constexpr int warp_share = static_cast<int>(div_up(div_up(share, warps), 32) * 32);  // tokens of a warp, in the order of ids
  static constexpr int own_bins = bins / C.cluster, thread_bins = max_of(1, own_bins / C.threads);
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

    __device__ __forceinline__ uint64_t rank(int i) const { return sampling_rank(x[i], first + static_cast<uint32_t>(i)); }
    __device__ __forceinline__ uint64_t weight(int i) const { return sampling_weight(sampling_exp(x[i] - largest)); }
    static __device__ __forceinline__ float scaled_of(uint64_t rank) { return value_of_order_key(static_cast<uint32_t>(rank >> 32)); }
    __device__ __forceinline__ uint64_t weight_of(uint64_t rank) const { return sampling_weight(sampling_exp(scaled_of(rank) - largest)); }
    __device__ __forceinline__ int bin(int i) const {
      const float distance = (largest - x[i]) * 64.0f;
      return distance < bins - 1 ? static_cast<int>(distance) : bins - 1;
    }
    /// Calls body(i) for this block's tokens: every thread for its own, a warp's in the order of ids.
    template <int Unroll = 1, class Body>
    __device__ __forceinline__ void for_tokens(Body&& body) const {
      const int begin = static_cast<int>(threadIdx.x / 32) * warp_share, end = min_of(begin + warp_share, size);
#pragma unroll Unroll
      for (int i = begin + static_cast<int>(threadIdx.x % 32); i < end; i += 32) body(i);
    }
  };

  /// Reads the row, applies the penalty; returns the group's largest rank by penalised logit.
  static __device__ uint64_t load_row(const Params& p, uint32_t b, float penalty, Row& row) {
    const T* logits = static_cast<const T*>(p.logits) + b * p.logits_stride + row.first;  // [size]
    row.template for_tokens<8>([&](int i) { row.x[i] = to_float(logits[i]); });
    if (p.previous) {
      __syncthreads();
      for (int64_t i = threadIdx.x; i < p.previous_count; i += C.threads) {
        const int64_t at = load_index(p.previous, p.wide_previous, b * p.previous_stride + i) - row.first;
        if (at >= 0 && at < row.size) row.x[at] = penalized(to_float(logits[at]), penalty);  // from the original: a repeated id changes nothing
      }
      __syncthreads();
    }
    uint64_t best = 0;
    row.for_tokens([&](int i) {
      const uint64_t rank = row.rank(i);
      best = rank > best ? rank : best;
    });
    return row.group.template reduce<MaxU64>(best);
  }

  /// The bin in which the running sum of `sums` over the group's bins reaches target > 0, and the sum before it; all blocks have filled `sums`.
  template <class Number>
  static __device__ Found find_bin(Row& row, const Number* sums, uint64_t target) {
    Shared& s = row.s;
    row.group.barrier();
    const int first = static_cast<int>(Group::rank()) * own_bins + static_cast<int>(threadIdx.x) * thread_bins;
    uint64_t of_bin[thread_bins], sum = 0;
#pragma unroll
    for (int i = 0; i < thread_bins; ++i) {
      of_bin[i] = 0;
      if (static_cast<int>(threadIdx.x) >= own_bins) continue;
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

  /// The largest rank c such that the tokens of `bin` ranked c or higher reach `target` together, by weight or by count.
  template <bool ByWeight>
  static __device__ uint64_t cut_in_bin(Row& row, int bin, uint64_t target) {
    Shared& s = row.s;
    if (threadIdx.x == 0) s.found.count = 0;
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
      for (uint32_t c = threadIdx.x; c < count; c += C.threads) {
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

  /// The same for a bin with more tokens than can be listed (many equal logits): bit by bit, a pass over the row for each.
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
    for (int i = static_cast<int>(threadIdx.x); i < bins; i += C.threads) s.count[i] = 0;
    __syncthreads();
    row.for_tokens([&](int i) { atomicAdd(&s.count[row.bin(i)], 1u); });
    const Found found = find_bin(row, s.count, static_cast<uint64_t>(top_k));
    if (found.bin == bins - 1) return 0;
    return cut_in_bin<false>(row, static_cast<int>(found.bin), static_cast<uint64_t>(top_k) - found.before);
  }

  /// Rank of the last token that top_p keeps of those ranked `cut` or higher.
  static __device__ uint64_t top_p_cut(Row& row, float top_p, uint64_t cut) {
    Shared& s = row.s;
    for (int i = static_cast<int>(threadIdx.x); i < bins; i += C.threads) s.weight[i] = 0;
    __syncthreads();
    uint64_t sum = 0;
    row.for_tokens([&](int i) {
      if (row.rank(i) < cut) return;
      const uint64_t weight = row.weight(i);
      sum += weight;
      if (weight > 0) atomicAdd(reinterpret_cast<unsigned long long*>(&s.weight[row.bin(i)]), static_cast<unsigned long long>(weight));
    });
    const uint64_t total = row.group.template reduce<SumU64>(sum);
    const uint64_t wanted = max_of<uint64_t>(1, top_p_weight(total, top_p));  // at least one token
    const Found found = find_bin(row, s.weight, wanted);
    return max_of(cut, cut_in_bin<true>(row, static_cast<int>(found.bin), wanted - found.before));
  }

  /// The lowest id whose weight together with that of all lower ids exceeds the random target.
  static __device__ uint32_t draw(Row& row, const Settings& settings, uint64_t cut, uint64_t random) {
    Shared& s = row.s;
    const int warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
    uint64_t sum = 0;
    row.template for_tokens<2>([&](int i) {
      float exponential = 0;
      if (row.rank(i) >= cut) exponential = sampling_exp(row.x[i] - row.largest);
      if (exponential < settings.min_p) exponential = 0;
      row.x[i] = exponential;
      sum += sampling_weight(exponential);
    });
    sum = warp_reduce_u64<SumU64>(sum);
    if (lane == 0) s.warp_weight[warp] = sum;
    const uint64_t own = row.group.template block_reduce<SumU64>(lane == 0 ? sum : 0);
    const uint64_t* slot = row.group.publish(own);
    uint64_t before = 0, total = 0;
    for (uint32_t r = 0; r < C.cluster; ++r) {
      const uint64_t other = Group::read(slot, r);
      if (r < Group::rank()) before += other;
      total += other;
    }
    const uint64_t target = scale_random(total, random);
    for (int w = 0; w < warp; ++w) before += s.warp_weight[w];
    if (before <= target && before + sum > target) {  // one warp of the group
      for (int i = warp * warp_share + lane;; i += 32) {
        const uint64_t weight = i < min_of(warp * warp_share + warp_share, row.size) ? sampling_weight(row.x[i]) : 0;
        const uint64_t reached = before + warp_scan_u64(weight);
        const uint32_t over = __ballot_sync(0xffffffffu, reached > target);
        if (over) return row.first + static_cast<uint32_t>(i - lane + __ffs(static_cast<int>(over)) - 1);
        before = __shfl_sync(0xffffffffu, reached, 31);
      }
    }
    return 0xffffffffu;
  }

  /// One work item: a block's share of a sequence.
  static __device__ void run(const Params& p, uint32_t item, char* smem) {
    Shared& s = *reinterpret_cast<Shared*>(smem);
    Group group(s.group);
    const uint32_t b = item / C.cluster, first = Group::rank() * share;
    Row row{s, group, nullptr, first, max_of(0, min_of(share, C.vocabulary - static_cast<int>(first)))};
    if constexpr (C.in_shared) row.x = reinterpret_cast<float*>(smem + fixed_shared_bytes);
    else row.x = p.scratch + static_cast<int64_t>(b) * C.vocabulary + first;
    const Settings settings(p, b);
    uint32_t id = 0xffffffffu;
    if (settings.legal()) {
      const uint64_t best = load_row(p, b, settings.penalty, row);
      row.largest = Row::scaled_of(best) / settings.temperature;
      if (settings.temperature == 0 || !(fabsf(row.largest) < infinity())) {
        id = threadIdx.x == 0 && Group::rank() == 0 ? 0xffffffffu - static_cast<uint32_t>(best) : id;
      } else {
        row.template for_tokens<2>([&](int i) { row.x[i] /= settings.temperature; });
        uint64_t cut = 0;
        if (settings.top_k > 0 && settings.top_k < C.vocabulary) cut = top_k_cut(row, settings.top_k);
        if (settings.top_p < 1) cut = top_p_cut(row, settings.top_p, cut);
        id = draw(row, settings, cut, random_bits(static_cast<uint64_t>(p.seeds[b]), static_cast<uint64_t>(p.steps[b])));
      }
    } else if (threadIdx.x == 0 && Group::rank() == 0) {
      p.ids[b] = -1;
    }
    if (id != 0xffffffffu && (threadIdx.x % 32 == 0)) p.ids[b] = static_cast<int32_t>(id);
    group.barrier();  // other blocks may still read this one's shared memory, and the next sequence reuses it
  }
};

}  // namespace cermet::sample
