// group_norm and instance_norm of groups that the registers of a cluster do not hold. A thread's elements are its own
// from the copy to the result: the first in shared memory, more in registers, and those after them are read again,
// which the L2 still has. The cluster meets once for each group.
#pragma once

#include "kernel/cuda/device/ptx/cluster.cuh"
#include "kernel/cuda/device/ptx/cp_async.cuh"
#include "kernel/cuda/device/ptx/mbarrier.cuh"
#include "kernel/cuda/device/rowwise/group_norm.cuh"
#include "kernel/cuda/device/tile/reduce.cuh"

#if CERMET_ARCH >= 900
namespace cermet::group_norm {

/// Of some elements: how many, their mean, and the sum of the squares of their distances from it. Sums of plain squares
/// would lose what is left of them.
struct Moments {
  float count = 0, mean = 0, squares = 0;

  /// Every lane gets those of all lanes of the warp.
  CERMET_DEVICE Moments over_lanes() const {
    const float all = warp_reduce<Sum>(count), centre = warp_reduce<Sum>(count * mean) / all, apart = mean - centre;
    return {all, centre, warp_reduce<Sum>(fmaf(apart * apart, count, squares))};
  }
};

/// Moments of the elements that a thread adds: about one of its own, which is no farther from their mean than the
/// squares of all say.
struct ThreadMoments {
  float count = 0, origin = 0, total[2] = {0, 0}, squares[2] = {0, 0};

  template <int Width>
  CERMET_DEVICE void add(const float (&v)[Width]) {
    if (count == 0) origin = v[0];
    count += Width;
#pragma unroll
    for (int k = 0; k < Width; ++k) {
      const float apart = v[k] - origin;
      total[k % 2] += apart;
      squares[k % 2] = fmaf(apart, apart, squares[k % 2]);
    }
  }
  CERMET_DEVICE Moments get() const {
    const float sum = total[0] + total[1], mean = count > 0 ? sum / count : 0.0f;
    return {count, origin + mean, squares[0] + squares[1] - sum * mean};
  }
};

/// Moments over all threads of a team's cluster, once: the warps of a block meet at a barrier, and a block sends what
/// they have to all blocks.
template <class Team>
struct ClusterMoments {
  static constexpr int warps = Team::warps, cluster = Team::cluster, bytes = cluster_moments_bytes(Team::size, cluster);
  using Slot = Vector<float, 4>;
  Slot* slots;  // [warps], [cluster], then a barrier

  CERMET_DEVICE explicit ClusterMoments(char* smem) : slots(reinterpret_cast<Slot*>(smem)) {
    if (Team::rank() == 0) {
      ptx::mbarrier_init(barrier(), 1);
      ptx::mbarrier_arrive_expect(barrier(), cluster * sizeof(Slot));
      ptx::fence_mbarrier_init();
    }
    ptx::cluster_arrive_relaxed();  // the others wait for it before they send
  }
  CERMET_DEVICE uint64_t* barrier() const { return reinterpret_cast<uint64_t*>(slots + warps + cluster); }

  template <int Count>
  static CERMET_DEVICE Moments over(const Slot* from) {
    const int lane = static_cast<int>(lane_index());
    Moments x;
    if (lane < Count) x = {from[lane][0], from[lane][1], from[lane][2]};
    return x.over_lanes();
  }

  CERMET_DEVICE Moments operator()(Moments x) const {
    const int lane = static_cast<int>(lane_index());
    x = x.over_lanes();
    if (lane == 0) slots[Team::warp()] = {x.count, x.mean, x.squares, 0};
    Team::sync();
    ptx::cluster_wait();
    if (Team::warp() == 0) {
      x = over<warps>(slots);
      if (lane < cluster)
        ptx::store_async_cluster(ptx::cluster_address(slots + warps + Team::cluster_rank(), lane),
                                 Slot{x.count, x.mean, x.squares, 0}, ptx::cluster_address(barrier(), lane));
    }
    ptx::mbarrier_wait_cluster(barrier(), 0);
    return over<cluster>(slots + warps);
  }
};

template <StagedConfig C>
struct Staged {
  using Params = group_norm::Params;
  using T = Element<C.x>;
  using Raw = Vector<T, C.width>;
  static constexpr int width = C.width, staged = C.staged, held = C.held;
  static constexpr bool whole = C.positions % width == 0;  // a vector lies in one channel
  static constexpr Overlap overlap = Overlap::late;

  template <class Team>
  static CERMET_DEVICE void run(const Params& p, uint32_t item, Team, char* smem) {
    constexpr int own = staged + held, step = Team::size * Team::cluster,
                  count = static_cast<int>(div_up(C.columns, step * width));
    const uint32_t number = item / Team::cluster;
    const T* const x = static_cast<const T*>(p.x.data) + number * p.x.step[0];
    auto* const y = static_cast<Element<C.y>*>(p.y.data) + number * p.y.step[0];
    Raw* const slots = reinterpret_cast<Raw*>(smem + ClusterMoments<Team>::bytes) + Team::rank();  // Team::size apart
    const int first = static_cast<int>(Team::cluster_rank() * Team::size + Team::rank());
    const auto column = [&](int i) { return (first + i * step) * width; };
    const auto inside = [&](int i) { return (i + 1) * step * width <= C.columns || column(i) < C.columns; };
    const auto load = [&](int i) { return *reinterpret_cast<const Raw*>(x + column(i)); };

    ClusterMoments<Team> cluster(smem);
#pragma unroll
    for (int i = 0; i < staged; ++i) {
      if (inside(i)) ptx::cp_async<sizeof(Raw)>(slots + i * Team::size, x + column(i));
      ptx::cp_async_commit();
    }
    Raw raw[held > 0 ? held : 1];
#pragma unroll
    for (int i = staged; i < own; ++i)
      if (inside(i)) raw[i - staged] = load(i);
    float v[width];
    ThreadMoments sums;
    for_constants<staged>([&]<int I>(Constant<I>) {
      ptx::cp_async_wait<staged - 1 - I>();
      if (!inside(I)) return;
      to_floats(slots[I * Team::size], v);
      sums.add(v);
    });
#pragma unroll
    for (int i = staged; i < own; ++i) {
      if (!inside(i)) continue;
      to_floats(raw[i - staged], v);
      sums.add(v);
    }
#pragma unroll 4
    for (int i = own; i < count; ++i) {
      if (!inside(i)) continue;
      to_floats(load(i), v);
      sums.add(v);
    }
    if constexpr (held > 0 && sizeof(Raw) % 4 == 0) {  // or the float32 values of all would be kept
#pragma unroll
      for (int i = 0; i < held; ++i) {
        auto words = __builtin_bit_cast(Words<sizeof(Raw) / 4>, raw[i]);
        hide(words);
        raw[i] = __builtin_bit_cast(Raw, words);
      }
    }
    const Moments all = cluster(sums.get());
    const float mean = all.mean, scale = norm::inverse_root(all.squares, C.columns, p.eps);
    const uint32_t channel = number % p.groups * p.group_channels;
    const auto store = [&](int i) {
      const auto at = static_cast<uint32_t>(column(i)), of_first = at / C.positions;
#pragma unroll
      for (int k = 0; k < width; ++k)
        v[k] = scaled<C>(p, (v[k] - mean) * scale,
                         channel + (whole ? of_first : (at + static_cast<uint32_t>(k)) / C.positions));
      store_vector(y + at, from_floats<Element<C.y>>(v));
    };
#pragma unroll 4
    for (int i = count - 1; i >= own; --i) {  // the last that were read are those that the L2 has for certain
      if (!inside(i)) continue;
      to_floats(load(i), v);
      store(i);
    }
#pragma unroll
    for (int i = 0; i < own; ++i) {
      if (!inside(i)) continue;
      to_floats(i < staged ? slots[i * Team::size] : raw[i < staged ? 0 : i - staged], v);
      store(i);
    }
    Team::sync();
  }
};

}  // namespace cermet::group_norm
#endif
