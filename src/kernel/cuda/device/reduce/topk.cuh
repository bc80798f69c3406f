// topk: a block for each row. The rank of the k-th element is found digit by digit from counts, what ranks as high is
// collected and sorted.
#pragma once

#include "kernel/cuda/device/movement/axes.cuh"
#include "kernel/cuda/device/reduce/order.cuh"
#include "kernel/cuda/device/reduce/topk.hpp"

namespace cermet::topk {

/// Orders elements: by key, then the lower position first. A larger rank is chosen first, and no rank of an element is
/// zero.
struct Rank32 {
  static constexpr int digits = 8;
  uint64_t bits = 0;  ///< key, complement of the position
  static CERMET_DEVICE Rank32 of(uint32_t key, uint32_t position) {
    return {static_cast<uint64_t>(key) << 32 | ~position};
  }
  CERMET_DEVICE uint32_t position() const { return ~static_cast<uint32_t>(bits); }
  /// Bits 8 * place .. 8 * place + 7.
  CERMET_DEVICE uint32_t digit(int place) const { return static_cast<uint32_t>(bits >> 8 * place) & 255u; }
  /// This rank from digit `place` on, zeros below.
  CERMET_DEVICE Rank32 above(int place) const { return {bits >> 8 * place << 8 * place}; }
  CERMET_DEVICE Rank32 with(int place, uint32_t digit) const {
    return {bits | static_cast<uint64_t>(digit) << 8 * place};
  }
  CERMET_DEVICE bool less(const Rank32& other) const { return bits < other.bits; }
  CERMET_DEVICE Rank32 from_lane(int mask) const { return {__shfl_xor_sync(0xffffffffu, bits, mask)}; }
};
struct Rank64 {
  static constexpr int digits = 12;
  uint64_t key = 0;
  uint32_t low = 0;  ///< complement of the position
  static CERMET_DEVICE Rank64 of(uint64_t key, uint32_t position) { return {key, ~position}; }
  CERMET_DEVICE uint32_t position() const { return ~low; }
  CERMET_DEVICE uint32_t digit(int place) const {
    return (place >= 4 ? static_cast<uint32_t>(key >> 8 * (place - 4)) : low >> 8 * place) & 255u;
  }
  CERMET_DEVICE Rank64 above(int place) const {
    return place >= 4 ? Rank64{key >> 8 * (place - 4) << 8 * (place - 4), 0}
                      : Rank64{key, low >> 8 * place << 8 * place};
  }
  CERMET_DEVICE Rank64 with(int place, uint32_t digit) const {
    return place >= 4 ? Rank64{key | static_cast<uint64_t>(digit) << 8 * (place - 4), low}
                      : Rank64{key, low | digit << 8 * place};
  }
  CERMET_DEVICE bool less(const Rank64& other) const { return key != other.key ? key < other.key : low < other.low; }
  CERMET_DEVICE Rank64 from_lane(int mask) const {
    return {__shfl_xor_sync(0xffffffffu, key, mask), __shfl_xor_sync(0xffffffffu, low, mask)};
  }
};

template <class Key>
struct RankOf {
  using type = Rank32;
};
template <>
struct RankOf<uint64_t> {
  using type = Rank64;
};

template <Config C>
struct Task {
  using Params = topk::Params;
  using T = Element<C.type>;
  using Order = OrderOf<T>;
  using Rank = typename RankOf<typename Order::Key>::type;
  static constexpr int warps = C.threads / 32;

  struct Shared {
    Rank chosen[C.sorted > 0 ? C.sorted : 1];
    Rank warp[32];
    uint32_t count[256];
    uint32_t digit, remaining, in_digit, filled;
  };

  static CERMET_DEVICE Rank rank_of(const T* x, int64_t i) {
    const auto key = Order::key(x[i]);
    return Rank::of(C.largest ? key : static_cast<decltype(key)>(~key), static_cast<uint32_t>(i));
  }

  /// The k-th largest rank, or a lower one above which there are exactly k.
  template <class Team>
  static __device__ Rank find_cut(Team team, const T* x, int64_t length, Shared& s) {
    Rank cut;
    if (team.rank() == 0) s.remaining = C.k;
    for (int place = Rank::digits - 1; place >= 0; --place) {
      for (int d = static_cast<int>(team.rank()); d < 256; d += C.threads) s.count[d] = 0;
      team.sync();
      const Rank prefix = cut;
      for (int64_t i = team.rank(); i < length; i += C.threads) {
        const Rank rank = rank_of(x, i);
        const Rank upper = place + 1 < Rank::digits ? rank.above(place + 1) : Rank{};
        if (!upper.less(prefix) && !prefix.less(upper)) atomicAdd(&s.count[rank.digit(place)], 1u);
      }
      team.sync();
      if (team.rank() < 32) {  // lane l holds digits 255 - 8 l down to 248 - 8 l
        const int high = 255 - 8 * static_cast<int>(team.rank());
        uint32_t sum = 0;
#pragma unroll
        for (int d = 0; d < 8; ++d) sum += s.count[high - d];
        uint32_t inclusive = sum;
#pragma unroll
        for (int offset = 1; offset < 32; offset *= 2) {
          const uint32_t other = __shfl_up_sync(0xffffffffu, inclusive, offset);
          if (static_cast<int>(team.rank()) >= offset) inclusive += other;
        }
        uint32_t before = inclusive - sum;
        const uint32_t wanted = s.remaining;
        __syncwarp();
        if (before < wanted && wanted <= inclusive) {
          int d = high;
          while (before + s.count[d] < wanted) before += s.count[d--];
          s.digit = static_cast<uint32_t>(d);
          s.remaining = wanted - before;
          s.in_digit = s.count[d];
        }
      }
      team.sync();
      cut = cut.with(place, s.digit);
      if (s.remaining == s.in_digit) break;  // all of this digit belong
      team.sync();
    }
    return cut;
  }

  /// Descending; places that were not filled hold rank zero.
  template <class Team>
  static __device__ void sort(Team team, Rank* chosen) {
    for (int size = 2; size <= C.sorted; size *= 2)
      for (int step = size / 2; step > 0; step /= 2) {
        for (int t = static_cast<int>(team.rank()); t < C.sorted / 2; t += C.threads) {
          const int i = 2 * t - (t & (step - 1)), j = i + step;
          const Rank a = chosen[i], b = chosen[j];
          const bool descending = (i & size) == 0;
          if (descending ? a.less(b) : b.less(a)) {
            chosen[i] = b;
            chosen[j] = a;
          }
        }
        team.sync();
      }
  }

  static CERMET_DEVICE void write(const Params& p, const T* x, const int64_t (&offset)[3], int j, Rank rank) {
    const uint32_t position = rank.position();
    static_cast<T*>(p.values)[offset[1] + j] = x[position];
    if (p.wide_ids) static_cast<int64_t*>(p.ids)[offset[2] + j] = position;
    else static_cast<int32_t*>(p.ids)[offset[2] + j] = static_cast<int32_t>(position);
  }

  /// One after the other: the largest rank below the last.
  template <class Team>
  static __device__ void choose_in_turn(Team team, const Params& p, const T* x, const int64_t (&offset)[3], Shared& s) {
    Rank last;
    for (int j = 0; j < C.k; ++j) {
      Rank best;
      for (int64_t i = team.rank(); i < p.length; i += C.threads) {
        const Rank rank = rank_of(x, i);
        if ((j == 0 || rank.less(last)) && best.less(rank)) best = rank;
      }
#pragma unroll
      for (int mask = 16; mask > 0; mask /= 2) {
        const Rank other = best.from_lane(mask);
        if (best.less(other)) best = other;
      }
      if (lane_index() == 0) s.warp[team.warp()] = best;
      team.sync();
      last = s.warp[0];
      for (int w = 1; w < warps; ++w)
        if (last.less(s.warp[w])) last = s.warp[w];
      if (team.rank() == 0) write(p, x, offset, j, last);
      team.sync();
    }
  }

  template <class Team>
  static __device__ void choose_together(Team team, const Params& p, const T* x, const int64_t (&offset)[3],
                                         Shared& s) {
    for (int i = static_cast<int>(team.rank()); i < C.sorted; i += C.threads) s.chosen[i] = Rank{};
    if (team.rank() == 0) s.filled = 0;
    team.sync();
    if (p.length <= C.sorted) {
      for (int64_t i = team.rank(); i < p.length; i += C.threads) s.chosen[i] = rank_of(x, i);
    } else {
      const Rank cut = find_cut(team, x, p.length, s);
      for (int64_t i = team.rank(); i < p.length; i += C.threads) {
        const Rank rank = rank_of(x, i);
        if (!rank.less(cut)) s.chosen[atomicAdd(&s.filled, 1u)] = rank;
      }
    }
    team.sync();
    sort(team, s.chosen);
    for (int j = static_cast<int>(team.rank()); j < C.k; j += C.threads) write(p, x, offset, j, s.chosen[j]);
    team.sync();
  }

  /// One work item: a row.
  template <class Team>
  static __device__ void run(const Params& p, uint32_t row, Team team, char* smem) {
    int64_t offset[3];
    offsets_at(p.rows, row, offset);
    const T* x = static_cast<const T*>(p.x) + offset[0];  // [length]
    if constexpr (C.sorted == 0) choose_in_turn(team, p, x, offset, *reinterpret_cast<Shared*>(smem));
    else choose_together(team, p, x, offset, *reinterpret_cast<Shared*>(smem));
  }
};

}  // namespace cermet::topk
