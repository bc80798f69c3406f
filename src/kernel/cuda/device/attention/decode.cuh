// Decoding attention over a paged cache: keys and values stream through shared memory once for all heads that share them, several tiles ahead of the
// tensor cores. Every warp has its own tiles, stages and softmax; the warps of a block meet only at the end of a span. Work item i is the i-th share of
// all units (decode_config.hpp). Of the blocks that share a span, the one that ends it adds up the others' parts, which they leave in the scratch.
#pragma once

#include "kernel/cuda/device/attention/decode_block.cuh"
#include "kernel/cuda/device/ptx/global.cuh"

namespace cermet::attention {

/// Scratch: a flag for each block, then their parts. A block leaves at most two parts: number 0 of the span that its share begins with, number 1 of the
/// span that it ends with. The flag says that the part of an unfinished span is complete; it has this value then, and is cleared by whoever reads the part.
/// Any other content means "not yet", so that the scratch needs no preparation.
inline constexpr uint64_t part_is_complete = 0x9e3779b97f4a7c15u;

template <int Rows, int ValueSize>
struct Parts {
  void* scratch;
  int blocks;
  __device__ __forceinline__ uint64_t* flag(int block) const { return static_cast<uint64_t*>(scratch) + block; }
  /// [Rows] maxima (times log2 e), [Rows] sums, [Rows, ValueSize] outputs.
  __device__ __forceinline__ float* part(int block, int number) const {
    return reinterpret_cast<float*>(static_cast<char*>(scratch) + decode_flag_bytes(blocks)) +
           (2 * block + number) * int64_t{decode_part_floats(Rows, ValueSize)};
  }
  static __device__ __forceinline__ float* output(float* part, int r, int d) { return part + 2 * Rows + r * ValueSize + d; }

  static __device__ __forceinline__ void write(float* part, int r, int d, const RowPart& x) {
    *reinterpret_cast<Vector<float, 4>*>(output(part, r, d)) = {x.output[0], x.output[1], x.output[2], x.output[3]};
    if (d == 0) part[r] = x.maximum, part[Rows + r] = x.sum;
  }
  /// After a barrier that follows the writes of all threads.
  __device__ __forceinline__ void announce(int block) const {
    if (threadIdx.x == 0) ptx::store_release(flag(block), part_is_complete);
  }
  /// Waits for the parts of blocks first .. last, which started before this one, and clears their flags.
  template <int Threads>
  __device__ __forceinline__ void wait(int first, int last) const {
    for (int block = first + static_cast<int>(threadIdx.x); block <= last; block += Threads) {
      while (ptx::load_acquire(flag(block)) != part_is_complete) {
      }
      *flag(block) = 0;
    }
    __syncthreads();
  }
};

template <DecodeConfig C>
struct DecodeTask {
  using Params = DecodeParams;
  using Block = DecodeBlock<C>;
  using Load = typename Block::Load;
  using Tile = typename Block::Tile;
  using Planner = Plan<Load::plan>;
  using AllParts = Parts<C.rows, C.value_size>;
  static constexpr int threads = Block::threads, stages = C.stages, at_once = 8,
                       most_merged = min_of(64, Block::stage_bytes*stages / (8 * C.rows));  ///< parts whose maxima and sums fit a warp's stages

  /// Adds the parts of a span whose last part is number 0 of this block, and writes its rows. `begin`: the span's first unit; `sums`: memory for the maxima
  /// and sums of most_merged parts.
  static __device__ __forceinline__ void merge(const attention::Params& p, const Place& span, const AllParts& parts, int units, int begin, int block,
                                               float* sums) {
    const int first = holder_of(units, begin, parts.blocks), first_number = share_of(units, first, parts.blocks).begin < begin ? 1 : 0;
    parts.template wait<threads>(first, block - 1);
    const auto part = [&](int i) { return parts.part(i, i == first ? first_number : 0); };
    constexpr int quads = C.value_size / 4, groups = (C.rows * quads + threads - 1) / threads;  // groups of four elements of a thread
    RowPart total[groups];
    for (int from = first; from <= block; from += most_merged) {  // once, but for very many blocks
      const int count = min_of(most_merged, block + 1 - from);
      for (int i = static_cast<int>(threadIdx.x); i < count * 2 * C.rows; i += threads) sums[i] = __ldcg(part(from + i / (2 * C.rows)) + i % (2 * C.rows));
      __syncthreads();
#pragma unroll
      for (int g = 0; g < groups; ++g) {
        const int i = g * threads + static_cast<int>(threadIdx.x), r = i / quads, d = i % quads * 4;
        if (r >= span.tile.rows) break;
        float top = total[g].maximum;
        for (int j = 0; j < count; ++j) top = fmaxf(top, sums[j * 2 * C.rows + r]);
        total[g].rescale(top);
        for (int j = 0; j < count; j += at_once) {
          float4 output[at_once];
#pragma unroll
          for (int k = 0; k < at_once; ++k) output[k] = __ldcg(reinterpret_cast<const float4*>(AllParts::output(part(from + min_of(j + k, count - 1)), r, d)));
#pragma unroll
          for (int k = 0; k < at_once; ++k)
            if (j + k < count)
              total[g].add(sums[(j + k) * 2 * C.rows + r], sums[(j + k) * 2 * C.rows + C.rows + r], {output[k].x, output[k].y, output[k].z, output[k].w}, top);
        }
      }
      __syncthreads();
    }
#pragma unroll
    for (int g = 0; g < groups; ++g) {
      const int i = g * threads + static_cast<int>(threadIdx.x), r = i / quads, d = i % quads * 4;
      if (r < span.tile.rows) write_row<C>(p, span.tile, span.head, r, d, total[g]);
    }
  }

  static __device__ __forceinline__ void run(const Params& params, uint32_t item, char* smem) {
    const attention::Params& p = params.a;
    const typename Block::Shared shared(smem);
    Block::prepare(shared);
    const int block = static_cast<int>(item);
    Place ahead;
    int units;
    const Share share = Planner::begin(p, block, params.thread_blocks, ahead, units);
    int left = share.end - share.begin, to_load = left;
    if (left == 0) return;
    const Place begin = ahead;
    Place at = ahead;
    int page = Load::find_page(p, ahead), free_stage = 0, stage = 0, lead = 0;
    uint32_t broken = 0;  // bit s: the tile in stage s needs a page that does not exist
    const auto load_next = [&] {
      if (to_load > 0) {
        const bool missing = Load::start(p, ahead, page, shared.stage + free_stage * Block::stage_bytes);
        broken = (broken & ~(1u << free_stage)) | static_cast<uint32_t>(missing) << free_stage;
        if (--to_load > 0) {
          if (ahead.ends_span()) Planner::next_span(p, ahead);
          else ++ahead.unit;
          page = Load::find_page(p, ahead);
        }
      } else {
        ptx::cp_async_commit();
      }
      free_stage = free_stage + 1 == stages ? 0 : free_stage + 1;
    };
    const AllParts parts{p.partials, params.thread_blocks};
    typename Tile::Queries queries;
    typename Tile::State state;
    bool from_start = at.unit == 0, first_span = true;
    while (true) {
      load_next();
      if (lead < stages - 1) {
        if (lead++ == 0) Tile::load_queries(p, at.tile, at.head, queries), state.clear();
        continue;
      }
      Block::wait();
      Block::consume(params, at, queries, state, shared.stage + stage * Block::stage_bytes, broken >> stage & 1u);
      const bool ends = at.ends_span(), last = --left == 0;
      if (ends || last) {
        float* part = parts.part(block, first_span ? 0 : 1);
        const bool whole = ends && from_start;
        Block::add_warps(shared, at.tile.rows, state, stage, [&](int, int r, int d, const RowPart& x) {
          if (whole) write_row<C>(p, at.tile, at.head, r, d, x);
          else AllParts::write(part, r, d, x);
        });
        if (!ends) parts.announce(block);
      }
      if (last) break;
      if (ends) {
        Planner::next_span(p, at);
        Tile::load_queries(p, at.tile, at.head, queries);
        state.clear();
        from_start = true;
        first_span = false;
      } else {
        ++at.unit;
      }
      if (++stage == stages) stage = 0;
      __syncwarp();  // all lanes have read the tile, whose stage is filled next
    }
    if (begin.unit > 0 && begin.tile.units - begin.unit <= share.end - share.begin)
      merge(p, begin, parts, units, share.begin - begin.unit, block, shared.outputs(0, 0));
  }
};

}  // namespace cermet::attention
