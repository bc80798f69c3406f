// Reductions over the lanes of a row: neighbouring lanes of a warp, a block, or a cluster of blocks. Fixed order: the
// same shape gives the same bits.
#pragma once

#include "kernel/cuda/device/ptx/cluster.cuh"
#include "kernel/cuda/device/ptx/mbarrier.cuh"
#include "kernel/cuda/device/rowwise/row_params.hpp"
#include "kernel/cuda/device/tile/reduce.cuh"

namespace cermet {

/// A thread's partial results of a reduction: of each lane that it stands for (RowLayout::fold), whose vectors come in
/// turn, in one or two chains of additions.
template <class Reduction, class Partition, int Chains>
struct RowPartials {
  float value[Partition::fold][Chains];  // [lanes that the thread stands for][chains]

  CERMET_DEVICE RowPartials() {
#pragma unroll
    for (auto& chains : value)
#pragma unroll
      for (float& chain : chains) chain = Reduction::identity();
  }
  /// For element k of the thread's vector i.
  CERMET_DEVICE float& at(int i, int k) { return value[i % Partition::fold][k % Chains]; }
  CERMET_DEVICE float of_lane(int f) const {
    if constexpr (Chains == 1) return value[f][0];
    else return value[f][0] + value[f][1];
  }
  static_assert(Chains == 1 || Chains == 2);
};

/// Reduces two numbers of each lane at once, with one barrier; all lanes get both results. A task makes one reducer and
/// calls it at most three times.
template <class Partition>
class RowReducer {
  using Team = typename Partition::Team;

 public:
  static constexpr int most_calls = most_row_reductions, most_warps = most_row_warps;
  static_assert(most_calls * (most_warps + 1) * 8 <= row_shared_bytes);

  struct alignas(8) Pair {
    float first, second;
  };

  CERMET_DEVICE explicit RowReducer(char* smem) : slots_(reinterpret_cast<Pair*>(smem)) {
#if CERMET_ARCH >= 900
    if constexpr (Partition::cluster > 1) {
      if (Team::rank() == 0) {
#pragma unroll
        for (int i = 0; i < most_calls; ++i) {
          ptx::mbarrier_init(barrier(i), 1);
          ptx::mbarrier_arrive_expect(barrier(i), total * sizeof(Pair));
        }
        ptx::fence_mbarrier_init();
      }
      ptx::cluster_arrive_relaxed();  // the others wait for it before they send
    }
#endif
  }

  /// First: partials of every lane that the thread stands for, in fixed order. Second: one number of the thread; the
  /// order of its combinations must not matter.
  template <class First, class Second, int Chains>
  CERMET_DEVICE Pair pair(const RowPartials<First, Partition, Chains>& first, float second) {
    constexpr int lanes = min_of(Partition::lanes, 32);
    Pair x{lanes_reduce<First, lanes>(first.of_lane(0)), lanes_reduce<Second, lanes>(second)};
    if constexpr (total > 1) {
      static_assert(total <= most_warps);
      const int lane = static_cast<int>(lane_index());
#pragma unroll
      for (int f = 1; f < Partition::fold; ++f) {
        const Pair more{lanes_reduce<First, lanes>(first.of_lane(f)), Second::identity()};
        if (lane == 0) slots_[calls_ * most_warps + f * warps + Team::warp()] = more;
      }
      exchange(x, lane, static_cast<int>(Team::warp()));
      const Pair* slots = slots_ + calls_ * most_warps;
      x = slot<First, Second>(slots, lane);
      if constexpr (total > 32) {
        const Pair y = slot<First, Second>(slots, lane + 32);
        x = {First::combine(x.first, y.first), Second::combine(x.second, y.second)};
      }
      x = {lanes_reduce<First, spread>(x.first), lanes_reduce<Second, spread>(x.second)};
      ++calls_;
    }
    return x;
  }

  template <class Reduction, int Chains>
  CERMET_DEVICE float operator()(const RowPartials<Reduction, Partition, Chains>& x) {
    return pair<Reduction, Nothing>(x, 0.0f).first;
  }
  /// One number of each thread, however many lanes it stands for.
  template <class First, class Second>
  CERMET_DEVICE Pair pair(float first, float second) {
    RowPartials<First, Partition, 1> parts;
    parts.value[0][0] = first;
    return pair<First, Second>(parts, second);
  }
  template <class Reduction>
  CERMET_DEVICE float operator()(float x) {
    return pair<Reduction, Nothing>(x, 0.0f).first;
  }

  /// Before the block's next item uses the same memory.
  CERMET_DEVICE void finish() const {
    if constexpr (Partition::lanes > 32 || Partition::cluster > 1) Team::sync();
  }

 private:
  struct Nothing {
    static CERMET_DEVICE float identity() { return 0.0f; }
    static CERMET_DEVICE float combine(float a, float) { return a; }
  };
  static constexpr int warps = Partition::lanes > 32 ? Partition::lanes / 32 : 1,
                       total = warps * Partition::cluster * Partition::fold;
  /// Slots repeat over the lanes, so that each group of `spread` of them has all.
  static constexpr int spread = total > 16 ? 32 : total > 8 ? 16 : total > 4 ? 8 : total > 2 ? 4 : 2;

  CERMET_DEVICE uint64_t* barrier(int call) const {
    return reinterpret_cast<uint64_t*>(slots_ + most_calls * most_warps) + call;
  }

  /// Brings the pair of every warp of the row into this block's slots.
  CERMET_DEVICE void exchange(Pair x, int lane, int warp) {
    Pair* slots = slots_ + calls_ * most_warps;
    if constexpr (Partition::cluster == 1) {
      if (lane == 0) slots[warp] = x;
      Team::sync();
    } else {
#if CERMET_ARCH >= 900
      if (calls_ == 0) ptx::cluster_wait();
      const Pair* own = slots + Team::cluster_rank() * warps + warp;
      if (lane < Partition::cluster)
        ptx::store_async_cluster_u64(ptx::cluster_address(own, lane),
                                     __float_as_uint(x.first) | static_cast<uint64_t>(__float_as_uint(x.second)) << 32,
                                     ptx::cluster_address(barrier(calls_), lane));
      ptx::mbarrier_wait_cluster(barrier(calls_), 0);
#endif
    }
  }

  template <class First, class Second>
  static CERMET_DEVICE Pair slot(const Pair* slots, int lane) {
    const int i = total > 32 ? lane : lane % spread;
    return i < total ? slots[i] : Pair{First::identity(), Second::identity()};
  }

  Pair* slots_;
  int calls_ = 0;
};

namespace norm {
/// 1 / sqrt(mean of the squares + eps)
CERMET_DEVICE float inverse_root(float squares, int length, float eps) {
  return rsqrtf(squares / static_cast<float>(length) + eps);
}
}  // namespace norm

}  // namespace cermet
