// From the warps' parts of a span to its rows: parts are added up in a block, left in the scratch for others, and
// written.
#pragma once

#include "kernel/cuda/device/attention/decode_mainloop.cuh"
#include "kernel/cuda/device/ptx/global.cuh"

namespace cermet::attention {

/// Factor of a part whose maximum is `maximum` when parts up to `top` (both times log2 e) are added.
CERMET_DEVICE float part_factor(float maximum, float top) {
  return top == -infinity() ? 1.0f : exp2_approximate(maximum - top);
}

/// Four elements of a row's output from element `d` on, and the row's maximum (times log2 e) and sum.
struct RowPart {
  float maximum = -infinity(), sum = 0.0f, output[4] = {};

  CERMET_DEVICE void rescale(float top) {
    const float factor = part_factor(maximum, top);
    maximum = top;
    sum *= factor;
#pragma unroll
    for (int e = 0; e < 4; ++e) output[e] *= factor;
  }
  /// Adds a part; both are relative to `top` afterwards, which is the maximum of all parts to come.
  CERMET_DEVICE void add(float part_maximum, float part_sum, const Vector<float, 4>& part_output, float top) {
    const float factor = part_factor(part_maximum, top);
    maximum = top;
    sum = fmaf(part_sum, factor, sum);
#pragma unroll
    for (int e = 0; e < 4; ++e) output[e] = fmaf(part_output[e], factor, output[e]);
  }
};

/// Writes a part of row r of a tile that all its parts were added to, and from d = 0 its lse.
template <DecodeConfig C>
CERMET_DEVICE void write_row(const Params& p, const RowTile& tile, int kv_head, int r, int d, const RowPart& part) {
  using Out = Element<C.out>;
  const int row = tile.first_row + r, token = tile.query_begin + row / C.group,
            head = kv_head * C.group + row % C.group;
  const int position = tile.position + row / C.group;
  const Visible seen = visible_keys(p, position, tile.end_key);
  Finish finish{seen.first < seen.last ? __frcp_rn(part.sum) : 0.0f, 0.0f};
  if (p.sinks || p.lse) finish = finish_row(p.sinks, head, seen.first < seen.last, part.maximum * ln_2, part.sum);
  Vector<Out, 4> o;
  float any = 0.0f;
#pragma unroll
  for (int e = 0; e < 4; ++e) {
    const float x = part.output[e] * finish.factor;
    any += x - x;
    o[e] = from_float<Out>(x);
  }
  Out* to = static_cast<Out*>(p.o) + token * p.o_token_stride + head * p.o_head_stride + d;
  if (p.aligned_out) *reinterpret_cast<Vector<Out, 4>*>(to) = o;
  else
#pragma unroll
    for (int e = 0; e < 4; ++e) to[e] = o[e];
  if (p.lse && d == 0) p.lse[head * p.lse_head_stride + token] = finish.lse;
  if (any == 0.0f || finish.factor != finish.factor) return;
  const ExactRow exact{tile.sequence,       token,        head, kv_head, position, 0, tile.end_key,
                       part.maximum * ln_2, finish.factor};
#pragma unroll 1
  for (int e = 0; e < 4; ++e) repair<ExactConfig{C.head_size, C.block, C.q, C.kv, C.out}>(p, exact, to - d, d + e);
}

/// Adds up the warps' parts of a span, through the stage that they have just read, and calls sink(i, r, d, part) for
/// every four elements of every used row, i counting them.
template <DecodeConfig C, class Team, class Sink>
CERMET_DEVICE void add_warps(const typename DecodeBlock<C, Team>::Shared& shared, int rows,
                             const typename DecodeTile<C>::State& state, int stage, Sink&& sink) {
  using Block = DecodeBlock<C, Team>;
  using Tile = DecodeTile<C>;
  constexpr int warps = C.warps, threads = Block::threads;
  // Floats from one row of a warp's outputs to the next; padded against bank conflicts where there is room in a stage.
  constexpr int exchange_row = C.rows * (C.value_size + 8) * 4 <= Block::stage_bytes ? C.value_size + 8 : C.value_size;
  static_assert(C.rows * exchange_row * 4 <= Block::stage_bytes);
  const int lane = static_cast<int>(lane_index()), warp = static_cast<int>(Team::warp());
  float* own = shared.outputs(warp, stage);
  __syncwarp();  // other lanes may still be reading the tile
#pragma unroll
  for (int h = 0; h < Tile::halves; ++h) {
    const int r = lane / 4 + 8 * h;
    float sum = state.sum[h] + __shfl_xor_sync(0xffffffffu, state.sum[h], 1);
    sum += __shfl_xor_sync(0xffffffffu, sum, 2);
    if (lane % 4 == 0)
      shared.sums[(warp * C.rows + r) * 2] = state.maximum[h], shared.sums[(warp * C.rows + r) * 2 + 1] = sum;
#pragma unroll
    for (int n = 0; n < C.value_size / 8; ++n) {
      const float* part = state.output[n];
      *reinterpret_cast<Vector<float, 2>*>(own + r * exchange_row + 8 * n + 2 * (lane % 4)) =
          C.rows == 8 ? Vector<float, 2>{part[0] + part[2], part[1] + part[3]}
                      : Vector<float, 2>{part[2 * h], part[2 * h + 1]};
    }
  }
  Team::sync();
  for (int i = static_cast<int>(Team::rank()); i < rows * (C.value_size / 4); i += threads) {
    const int r = i / (C.value_size / 4), d = i % (C.value_size / 4) * 4;
    float top = -infinity();
#pragma unroll
    for (int w = 0; w < warps; ++w) top = fmaxf(top, shared.sums[(w * C.rows + r) * 2]);
    RowPart part;
#pragma unroll
    for (int w = 0; w < warps; ++w)
      part.add(shared.sums[(w * C.rows + r) * 2], shared.sums[(w * C.rows + r) * 2 + 1],
               *reinterpret_cast<const Vector<float, 4>*>(shared.outputs(w, stage) + r * exchange_row + d), top);
    sink(i, r, d, part);
  }
  Team::sync();
  Block::prepare(shared, stage, 1);
}

/// A flag says that a part is complete; it has this value then, and is cleared by whoever adds the parts up. Any other
/// content means "not yet".
inline constexpr uint64_t part_is_complete = 0x9e3779b97f4a7c15u;

/// Two flags for each item, then the parts. An item leaves at most two parts: number 0 of the span that its share
/// begins with, number 1 of the span that it ends with. Where all items run together, the one that ends a span waits
/// for the others, and says nothing of its own part. Otherwise nobody waits: everyone looks whether his part was the
/// last, and whoever finds all of them adds them up. Two may find that at once, and write the same bits.
template <int Rows, int ValueSize, class Team>
struct Parts {
  void* scratch;
  int blocks;
  CERMET_DEVICE uint64_t* flag(int block, int number) const {
    return static_cast<uint64_t*>(scratch) + (Team::together ? 0 : number * blocks) + block;
  }
  /// [Rows] maxima (times log2 e), [Rows] sums, [Rows, ValueSize] outputs.
  CERMET_DEVICE float* part(int block, int number) const {
    return reinterpret_cast<float*>(static_cast<char*>(scratch) + decode_flag_bytes(blocks)) +
           (2 * block + number) * int64_t{decode_part_floats(Rows, ValueSize)};
  }
  static CERMET_DEVICE float* output(float* part, int r, int d) { return part + 2 * Rows + r * ValueSize + d; }

  static CERMET_DEVICE void write(float* part, int r, int d, const RowPart& x) {
    *reinterpret_cast<Vector<float, 4>*>(output(part, r, d)) = {x.output[0], x.output[1], x.output[2], x.output[3]};
    if (d == 0) part[r] = x.maximum, part[Rows + r] = x.sum;
  }
  /// After a barrier that follows the writes of all threads.
  CERMET_DEVICE void announce(int block, int number) const {
    if (Team::rank() == 0) ptx::store_release(flag(block, number), part_is_complete);
  }
  /// Waits for the parts of items first .. last, which run at the same time, and clears their flags.
  CERMET_DEVICE void wait(int first, int last) const {
    for (int block = first + static_cast<int>(Team::rank()); block <= last; block += Team::size) {
      while (ptx::load_acquire(flag(block, 0)) != part_is_complete) {
      }
      *flag(block, 0) = 0;
    }
    Team::sync();
  }
  /// Whether the parts of items first .. last are complete: number 0, but for the first. Clears their flags then. This
  /// item has announced its own, and the fence puts that before its look at the others, so that of several items the
  /// last to look finds all.
  CERMET_DEVICE bool take_if_complete(int first, int last, int first_number) const {
    bool missing = false;
    if (Team::warp() == 0) {
      __syncwarp();  // the first lane announced the part
      ptx::fence_sequential();
      for (int block = first + static_cast<int>(lane_index()); block <= last; block += 32)
        missing |= ptx::load_acquire(flag(block, block == first ? first_number : 0)) != part_is_complete;
    }
    if (Team::any(missing)) return false;
    for (int block = first + static_cast<int>(Team::rank()); block <= last; block += Team::size)
      *flag(block, block == first ? first_number : 0) = 0;
    return true;
  }
};

/// Parts whose maxima and sums fit a warp's stages.
template <DecodeConfig C>
inline constexpr int most_merged_parts = min_of(64, decode_stage_bytes(C.head_size, C.value_size, C.tile_keys) *
                                                        C.stages / (8 * C.rows));

/// Adds the parts of a span that items up to and with `block` hold, and writes its rows, unless that is for another
/// item to do. `begin`: the span's first unit; `sums`: memory for the maxima and sums of most_merged parts.
template <DecodeConfig C, class Team>
CERMET_DEVICE void merge(const Params& p, const Place& span, const Parts<C.rows, C.value_size, Team>& parts, int units,
                         int begin, int block, float* sums) {
  using AllParts = Parts<C.rows, C.value_size, Team>;
  constexpr int threads = Team::size, at_once = 8, most_merged = most_merged_parts<C>;
  const int first = holder_of(units, begin, parts.blocks),
            first_number = share_of(units, first, parts.blocks).begin < begin ? 1 : 0;
  if constexpr (Team::together) parts.wait(first, block - 1);
  else if (!parts.take_if_complete(first, block, first_number)) return;
  const auto part = [&](int i) { return parts.part(i, i == first ? first_number : 0); };
  constexpr int quads = C.value_size / 4,
                groups = (C.rows * quads + threads - 1) / threads;  // groups of four elements of a thread
  RowPart total[groups];
  for (int from = first; from <= block; from += most_merged) {  // once, but for very many blocks
    const int count = min_of(most_merged, block + 1 - from);
    for (int i = static_cast<int>(Team::rank()); i < count * 2 * C.rows; i += threads)
      sums[i] = __ldcg(part(from + i / (2 * C.rows)) + i % (2 * C.rows));
    Team::sync();
#pragma unroll
    for (int g = 0; g < groups; ++g) {
      const int i = g * threads + static_cast<int>(Team::rank()), r = i / quads, d = i % quads * 4;
      if (r >= span.tile.rows) break;
      float top = total[g].maximum;
      for (int j = 0; j < count; ++j) top = fmaxf(top, sums[j * 2 * C.rows + r]);
      total[g].rescale(top);
      for (int j = 0; j < count; j += at_once) {
        float4 output[at_once];
#pragma unroll
        for (int k = 0; k < at_once; ++k)
          output[k] =
              __ldcg(reinterpret_cast<const float4*>(AllParts::output(part(from + min_of(j + k, count - 1)), r, d)));
#pragma unroll
        for (int k = 0; k < at_once; ++k)
          if (j + k < count)
            total[g].add(sums[(j + k) * 2 * C.rows + r], sums[(j + k) * 2 * C.rows + C.rows + r],
                         {output[k].x, output[k].y, output[k].z, output[k].w}, top);
      }
    }
    Team::sync();
  }
#pragma unroll
  for (int g = 0; g < groups; ++g) {
    const int i = g * threads + static_cast<int>(Team::rank()), r = i / quads, d = i % quads * 4;
    if (r < span.tile.rows) write_row<C>(p, span.tile, span.head, r, d, total[g]);
  }
}

}  // namespace cermet::attention
