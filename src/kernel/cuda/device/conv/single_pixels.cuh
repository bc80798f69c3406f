// Squeeze and excitation: the mean over an image, a product, what follows it, another product and what follows that. A
// cluster of blocks has a sample: each adds up a part of its pixels and computes a part of both products; sums and the
// short vector pass through the cluster's shared memory. The weights, of which each block needs a part, arrive while
// earlier launches end.
#pragma once

#include "kernel/cuda/device/conv/single_pixels.hpp"
#include "kernel/cuda/device/ptx/cluster.cuh"
#include "kernel/cuda/device/ptx/cp_async.cuh"
#include "kernel/cuda/device/tile/epilogue.cuh"
#include "kernel/cuda/device/tile/reduce.cuh"

namespace cermet::conv {

/// First, Second: the epilogues, see tile/epilogue.cuh, of operands with values for columns or for everything.
template <SinglePixelsConfig C, class First, class Second>
struct SinglePixels {
  using Params = SinglePixelsParams;
  using T = Element<C.type>;
  static constexpr SinglePixelsShape shape{C.channels, C.few, C.outputs, sizeof(T), C.cluster};
  static constexpr int threads = SinglePixelsShape::threads, width = per_16_bytes<T>, vectors = shape.vectors(),
                       groups = shape.groups(), parts = shape.parts();
  static constexpr int row = SinglePixelsShape::padded(C.channels), few_row = SinglePixelsShape::padded(C.few);
  static_assert(shape.width() == width && C.channels % width == 0 && groups > 0);

  struct Shared {
    T *first, *second;             // [few_each][row], [outputs_each][few_row]
    float *sums, *parted, *total;  // [groups][row], [parts][row], [row]: of this block's pixels
    float *mean, *few;             // of all blocks' pixels; after the first product

    __device__ explicit Shared(char* smem)
        : first(reinterpret_cast<T*>(smem)), second(reinterpret_cast<T*>(smem + shape.first_bytes())) {
      sums = reinterpret_cast<float*>(smem + shape.first_bytes() + shape.second_bytes());
      parted = sums + groups * row, total = parted + parts * row, mean = total + row, few = mean + row;
    }
  };

  /// Where this block's part of `count` begins, and how much of it there is.
  struct Part {
    int begin, count;
    CERMET_DEVICE Part(int each, int all, int rank)
        : begin(rank * each), count(max_of(0, min_of(each, all - rank * each))) {}
  };

  template <class Team>
  static CERMET_DEVICE void copy_rows(Team team, T* to, const void* weight, const Part& part, int length) {
    const T* const from = static_cast<const T*>(weight) + static_cast<int64_t>(part.begin) * length;
#pragma unroll 1
    for (int i = static_cast<int>(team.rank()) * width; i < part.count * length; i += threads * width)
      ptx::cp_async<16>(to + i, from + i);
  }

  template <class Team>
  static CERMET_DEVICE void fetch(const Params& p, uint32_t, Team team, char* smem) {
    const Shared shared(smem);
    const int rank = static_cast<int>(team.cluster_rank());
    copy_rows(team, shared.first, p.first, Part(shape.few_each(), C.few, rank), row);
    copy_rows(team, shared.second, p.second, Part(shape.outputs_each(), C.outputs, rank), few_row);
    ptx::cp_async_commit();
  }

  static CERMET_DEVICE void add(const Vector<T, width>& v, float (&total)[width]) {
#pragma unroll
    for (int c = 0; c < width; ++c) total[c] += to_float(v[c]);
  }

  /// Pixels first, first + groups and so on of whatever lies anyhow in memory.
  static CERMET_DEVICE void add_scattered(const Params& p, const T* x, int first, int end, float (&total)[width]) {
#pragma unroll 1
    for (int pixel = first; pixel < end; pixel += groups) {
      const int line = pixel / p.columns;
      const T* const at = x + line * p.x_row + (pixel - line * p.columns) * p.x_column;
      Vector<T, width> v;
#pragma unroll
      for (int c = 0; c < width; ++c) v[c] = at[c * p.x_channel];
      add(v, total);
    }
  }

  /// Sums of this block's pixels, each thread's of every groups-th pixel. Code that runs once is slow to arrive, so
  /// there is little of it.
  template <class Team>
  static CERMET_DEVICE void add_pixels(const Params& p, Team team, const T* sample, float* sums) {
    const int each = (p.pixels + C.cluster - 1) / C.cluster, begin = static_cast<int>(team.cluster_rank()) * each,
              end = min_of(begin + each, p.pixels);
    const int group = static_cast<int>(team.rank()) / vectors,
              channel = static_cast<int>(team.rank()) % vectors * width;
    if (group >= groups) return;
    float total[width] = {};
    if (p.vectors && p.one_line) {
      constexpr int ahead = 4;
      const int64_t step = groups * p.x_column;
      const T* x = sample + channel + (begin + group) * p.x_column;
#pragma unroll 1
      for (int pixel = begin + group; pixel < end; pixel += ahead * groups, x += ahead * step) {
        Vector<T, width> v[ahead] = {};
#pragma unroll
        for (int i = 0; i < ahead; ++i)
          if (pixel + i * groups < end) v[i] = *reinterpret_cast<const Vector<T, width>*>(x + i * step);
#pragma unroll
        for (int i = 0; i < ahead; ++i) add(v[i], total);
      }
    } else {
      add_scattered(p, sample + channel * p.x_channel, begin + group, end, total);
    }
#pragma unroll
    for (int c = 0; c < width; ++c) sums[group * row + channel + c] = total[c];
  }

  static CERMET_DEVICE float rounded(float x, bool rounds) { return rounds ? to_float(from_float<T>(x)) : x; }

  static CERMET_DEVICE float load_cluster(const float* own, int rank) {
    if constexpr (C.cluster == 1) return *own;
    else return __uint_as_float(ptx::load_cluster_u32(ptx::cluster_address(own, static_cast<uint32_t>(rank))));
  }
  template <class Team>
  static CERMET_DEVICE void sync_cluster(Team team) {
    if constexpr (C.cluster == 1) team.sync();
    else ptx::cluster_barrier();
  }

  /// The mean of every channel, in every block.
  template <class Team>
  static CERMET_DEVICE void find_mean(const Params& p, Team team, const Shared& shared, const T* sample) {
    const int rank = static_cast<int>(team.rank());
    add_pixels(p, team, sample, shared.sums);
    team.sync();
    for (int i = rank; i < parts * C.channels; i += threads) {
      const int part = i / C.channels, channel = i - part * C.channels;
      float sum = 0;
#pragma unroll 4
      for (int g = part; g < groups; g += parts) sum += shared.sums[g * row + channel];
      shared.parted[part * row + channel] = sum;
    }
    team.sync();
    for (int channel = rank; channel < C.channels; channel += threads) {
      float sum = 0;
#pragma unroll 4
      for (int part = 0; part < parts; ++part) sum += shared.parted[part * row + channel];
      shared.total[channel] = sum;
    }
    sync_cluster(team);
    for (int channel = rank; channel < C.channels; channel += threads) {
      float sum = 0;
#pragma unroll
      for (int block = 0; block < C.cluster; ++block) sum += load_cluster(shared.total + channel, block);
      shared.mean[channel] = rounded(sum / p.divisor, C.rounds_mean);
    }
  }

  /// A warp for each result of the first product, which goes to every block.
  template <class Team>
  static CERMET_DEVICE void squeeze(const Params& p, Team team, const Shared& shared, int sample) {
    const Part part(shape.few_each(), C.few, static_cast<int>(team.cluster_rank()));
    const int lane = static_cast<int>(lane_index());
    for (int i = static_cast<int>(team.warp()); i < part.count; i += threads / 32) {
      epilogue::ValuesOf<First> x;  // on their way while the products are added
      epilogue::load_row<First>(p.first_extra, sample, 0, x);
      epilogue::load_place<First>(p.first_extra, sample, part.begin + i, 0, x);
      float sum = 0;
#pragma unroll 1
      for (int channel = lane * width; channel < C.channels; channel += 32 * width) {
        const auto w = *reinterpret_cast<const Vector<T, width>*>(shared.first + i * row + channel);
#pragma unroll
        for (int c = 0; c < width; ++c) sum = fmaf(shared.mean[channel + c], to_float(w[c]), sum);
      }
      sum = warp_reduce<Sum>(sum);
      const float value = rounded(First::value(sum, x), C.rounds_few);
      if constexpr (C.cluster == 1) shared.few[part.begin + i] = value;
      else if (lane < C.cluster)
        ptx::store_cluster_u32(ptx::cluster_address(shared.few + part.begin + i, static_cast<uint32_t>(lane)),
                               __float_as_uint(value));
    }
  }

  /// Four threads for each result.
  template <class Team>
  static CERMET_DEVICE void excite(const Params& p, Team team, const Shared& shared, int sample) {
    using Out = Element<Second::out>;
    constexpr int lanes = 4;
    const Part part(shape.outputs_each(), C.outputs, static_cast<int>(team.cluster_rank()));
    const int lane = static_cast<int>(team.rank()) % lanes;
    Out* const y = static_cast<Out*>(p.y) + sample * p.y_sample;
    for (int first = 0; first < part.count; first += threads / lanes) {
      const int i = first + static_cast<int>(team.rank()) / lanes;
      const int own = min_of(i, part.count - 1);
      const T* const w = shared.second + own * few_row;
      epilogue::ValuesOf<Second> x;
      epilogue::load_row<Second>(p.second_extra, sample, 0, x);
      epilogue::load_place<Second>(p.second_extra, sample, part.begin + own, 0, x);
      float sum = 0;
#pragma unroll 4
      for (int c = lane; c < C.few; c += lanes) sum = fmaf(shared.few[c], to_float(w[c]), sum);
      sum = warp_reduce<Sum, lanes>(sum);
      if (lane != 0 || i >= part.count) continue;
      y[(part.begin + i) * p.y_channel] = epilogue::rounded<Out>(Second::value(sum, x));
    }
  }

  template <class Team>
  static CERMET_DEVICE void compute(const Params& p, uint32_t item, Team team, char* smem) {
    static_assert(Team::size == threads && Team::cluster == C.cluster);
    const Shared shared(smem);
    const int sample = static_cast<int>(item) / C.cluster;
    find_mean(p, team, shared, static_cast<const T*>(p.x) + sample * p.x_sample);
    ptx::cp_async_wait<0>();
    team.sync();
    squeeze(p, team, shared, sample);
    sync_cluster(team);
    excite(p, team, shared, sample);
  }
};

}  // namespace cermet::conv
