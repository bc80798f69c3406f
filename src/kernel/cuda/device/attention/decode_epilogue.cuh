// Epilogue and combine of decoding attention: the warps' partial results of a span are combined in a block, which
// writes the rows, or leaves a partial in the scratch, where one block combines those of all.
#pragma once

#include "kernel/cuda/device/attention/decode_mainloop.cuh"
#include "kernel/cuda/device/ptx/global.cuh"

namespace cermet::attention {

/// Factor of a partial whose maximum is `maximum` when partials up to `top` (both times log2 e) are added.
CERMET_DEVICE float rescale_factor(float maximum, float top) {
  return top == -infinity() ? 1.0f : exp2_approximate(maximum - top);
}

/// Four elements of a row's output from element `d` on, and the row's maximum (times log2 e) and sum.
struct PartialRow {
  float maximum = -infinity(), sum = 0.0f, output[4] = {};

  CERMET_DEVICE void rescale(float top) {
    const float factor = rescale_factor(maximum, top);
    maximum = top;
    sum *= factor;
#pragma unroll
    for (int e = 0; e < 4; ++e) output[e] *= factor;
  }
  /// Adds a partial; both are relative to `top` afterwards, which is the maximum of all partials to come.
  CERMET_DEVICE void add(float partial_maximum, float partial_sum, const Vector<float, 4>& partial_output, float top) {
    const float factor = rescale_factor(partial_maximum, top);
    maximum = top;
    sum = fmaf(partial_sum, factor, sum);
#pragma unroll
    for (int e = 0; e < 4; ++e) output[e] = fmaf(partial_output[e], factor, output[e]);
  }
};

/// How row r of a tile is written once all its partials are added up.
template <DecodeConfig C>
struct RowWriter {
  using Out = Element<C.out>;
  const Params& p;
  int sequence, token, head, kv_head, position, end_key;
  float maximum;  ///< times log2 e
  Finish finish;
  Out* to;

  CERMET_DEVICE RowWriter(const Params& params, const QueryTile& tile, int kv_head, int r, float maximum, float sum)
      : p(params), sequence(tile.sequence), kv_head(kv_head), end_key(tile.end_key), maximum(maximum) {
    const int row = tile.first_row + r;
    token = tile.query_begin + row / C.group, head = kv_head * C.group + row % C.group;
    position = tile.position + row / C.group;
    const Visible seen = visible_keys(p, position, end_key);
    finish = {seen.first < seen.last ? __frcp_rn(sum) : 0.0f, 0.0f};
    if (p.sinks || p.lse) finish = finish_row(p.sinks, head, seen.first < seen.last, maximum * ln_2, sum);
    to = static_cast<Out*>(p.o) + token * p.o_token_stride + head * p.o_head_stride;
  }
  /// Four elements of the row from d on. Returns 0 if they are finite, else NaN.
  CERMET_DEVICE float store(int d, const float (&output)[4]) const {
    Vector<Out, 4> o;
    float any = 0.0f;
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const float x = output[e] * finish.factor;
      any += x - x;
      o[e] = from_float<Out>(x);
    }
    if (p.aligned_out) *reinterpret_cast<Vector<Out, 4>*>(to + d) = o;
    else
#pragma unroll
      for (int e = 0; e < 4; ++e) to[d + e] = o[e];
    return any;
  }
  CERMET_DEVICE void store_lse() const {
    if (p.lse) p.lse[head * p.lse_head_stride + token] = finish.lse;
  }
  /// Computes those of the four elements from d on again that are NaN although the operator does not say so. `any`: the
  /// sum of what store() returned.
  CERMET_DEVICE void repair_quad(int d, float any) const {
    if (any == 0.0f || finish.factor != finish.factor) return;
    const ExactRow exact{sequence, token, head, kv_head, position, 0, end_key, maximum * ln_2, finish.factor};
#pragma unroll 1
    for (int e = 0; e < 4; ++e) repair<ExactConfig{C.head_size, C.block, C.q, C.kv, C.out}>(p, exact, to, d + e);
  }
};

/// Writes a partial of row r of a tile that all its partials were added to, and from d = 0 its lse.
template <DecodeConfig C>
CERMET_DEVICE void write_row(const Params& p, const QueryTile& tile, int kv_head, int r, int d,
                             const PartialRow& partial) {
  const RowWriter<C> row(p, tile, kv_head, r, partial.maximum, partial.sum);
  const float any = row.store(d, partial.output);
  if (d == 0) row.store_lse();
  row.repair_quad(d, any);
}

/// Combines the warps' partials of a span, through the stage that they have just read, and calls sink(i, r, d, partial)
/// for every four elements of every used row, i counting them.
template <DecodeConfig C, class Team, class Sink>
CERMET_DEVICE void combine_warps(const typename DecodeMainloop<C, Team>::Shared& shared, int rows,
                                 const typename DecodeMma<C>::State& state, int stage, Sink&& sink) {
  using Mainloop = DecodeMainloop<C, Team>;
  using Mma = DecodeMma<C>;
  constexpr int warps = C.warps, threads = Mainloop::threads;
  // Floats from one row of a warp's outputs to the next; padded against bank conflicts where there is room in a stage.
  constexpr int exchange_row =
      C.rows * (C.value_size + 8) * 4 <= Mainloop::stage_bytes ? C.value_size + 8 : C.value_size;
  static_assert(C.rows * exchange_row * 4 <= Mainloop::stage_bytes);
  const int lane = static_cast<int>(lane_index()), warp = static_cast<int>(Team::warp());
  float* own = shared.outputs(warp, stage);
  __syncwarp();  // other lanes may still be reading the tile
#pragma unroll
  for (int h = 0; h < Mma::halves; ++h) {
    const int r = lane / 4 + 8 * h;
    float sum = state.sum[h] + __shfl_xor_sync(0xffffffffu, state.sum[h], 1);
    sum += __shfl_xor_sync(0xffffffffu, sum, 2);
    if (lane % 4 == 0)
      shared.sums[(warp * C.rows + r) * 2] = state.maximum[h], shared.sums[(warp * C.rows + r) * 2 + 1] = sum;
#pragma unroll
    for (int n = 0; n < C.value_size / 8; ++n) {
      const float* partial = state.output[n];
      if constexpr (Mma::is_quantized)
        Mma::store_outputs(state, n, h, [&](int d) { return own + r * exchange_row + d; });
      else
        *reinterpret_cast<Vector<float, 2>*>(own + r * exchange_row + 8 * n + 2 * (lane % 4)) =
            C.rows == 8 ? Vector<float, 2>{partial[0] + partial[2], partial[1] + partial[3]}
                        : Vector<float, 2>{partial[2 * h], partial[2 * h + 1]};
    }
  }
  Team::sync();
  for (int i = static_cast<int>(Team::rank()); i < rows * (C.value_size / 4); i += threads) {
    const int r = i / (C.value_size / 4), d = i % (C.value_size / 4) * 4;
    float top = -infinity();
#pragma unroll
    for (int w = 0; w < warps; ++w) top = fmaxf(top, shared.sums[(w * C.rows + r) * 2]);
    PartialRow partial;
#pragma unroll
    for (int w = 0; w < warps; ++w)
      partial.add(shared.sums[(w * C.rows + r) * 2], shared.sums[(w * C.rows + r) * 2 + 1],
                  *reinterpret_cast<const Vector<float, 4>*>(shared.outputs(w, stage) + r * exchange_row + d), top);
    sink(i, r, d, partial);
  }
  Team::sync();
  Mainloop::prepare(shared, stage, 1);
}

/// Value of the flag of a complete partial, cleared by the item that combines. Any other content means "not yet", so
/// that the scratch needs no preparation.
inline constexpr uint64_t partial_is_complete = 0x9e3779b97f4a7c15u;

/// The scratch of the launch: two flags for each item, then the partials. An item leaves at most two: number 0 of the
/// span that its share begins with, number 1 of the span that it ends with. Where all items run together, the one that
/// ends a span waits for the others, and does not publish its own. Otherwise no item waits: each checks whether its
/// partial was the last, and one that finds all of them combines them. Two may find that at once, and write the same
/// bits.
template <int Rows, int ValueSize, class Team>
struct Partials {
  void* scratch;
  int blocks;
  CERMET_DEVICE uint64_t* flag(int block, int number) const {
    return static_cast<uint64_t*>(scratch) + (Team::together ? 0 : number * blocks) + block;
  }
  /// [Rows] maxima (times log2 e), [Rows] sums, [Rows, ValueSize] outputs.
  CERMET_DEVICE float* partial(int block, int number) const {
    return reinterpret_cast<float*>(static_cast<char*>(scratch) + decode_flag_bytes(blocks)) +
           (2 * block + number) * int64_t{decode_partial_floats(Rows, ValueSize)};
  }
  static CERMET_DEVICE float* output(float* partial, int r, int d) { return partial + 2 * Rows + r * ValueSize + d; }

  static CERMET_DEVICE void write(float* partial, int r, int d, const PartialRow& x) {
    *reinterpret_cast<Vector<float, 4>*>(output(partial, r, d)) = {x.output[0], x.output[1], x.output[2], x.output[3]};
    if (d == 0) partial[r] = x.maximum, partial[Rows + r] = x.sum;
  }
  /// After a barrier that follows the writes of all threads.
  CERMET_DEVICE void publish(int block, int number) const {
    if (Team::rank() == 0) ptx::store_release(flag(block, number), partial_is_complete);
  }
  /// Waits for the partials of items first .. last, which run at the same time, and clears their flags.
  CERMET_DEVICE void wait(int first, int last) const {
    for (int block = first + static_cast<int>(Team::rank()); block <= last; block += Team::size) {
      while (ptx::load_acquire(flag(block, 0)) != partial_is_complete) {
      }
      *flag(block, 0) = 0;
    }
    Team::sync();
  }
  /// Whether the partials of items first .. last are complete: number 0, but for the first. Clears their flags then.
  /// This item has published its own, and the fence orders that before its loads of the others' flags, so that of
  /// several items the last finds all.
  CERMET_DEVICE bool take_if_complete(int first, int last, int first_number) const {
    bool missing = false;
    if (Team::warp() == 0) {
      __syncwarp();  // the first lane published the partial
      ptx::fence_sequential();
      for (int block = first + static_cast<int>(lane_index()); block <= last; block += 32)
        missing |= ptx::load_acquire(flag(block, block == first ? first_number : 0)) != partial_is_complete;
    }
    if (Team::any(missing)) return false;
    for (int block = first + static_cast<int>(Team::rank()); block <= last; block += Team::size)
      *flag(block, block == first ? first_number : 0) = 0;
    return true;
  }
};

/// Calls combine(span, first_unit, last) for those spans of a share, from `begin` to `at`, that other items hold parts
/// of, too, where this item may be the one to combine them: the item `last` has the last unit.
template <class Team, class Combine>
CERMET_DEVICE void for_shared_spans(const WorkUnit& begin, const WorkUnit& at, const Share& share, int units,
                                    int blocks, int block, bool one_span, Combine&& combine) {
  const bool ends_first = begin.tile.units - begin.unit <= share.end - share.begin;
  if constexpr (Team::together) {
    if (begin.unit > 0 && ends_first) combine(begin, share.begin - begin.unit, block);
  } else {
    // The span that the share begins in, where other blocks hold partials of it, and the one that it ends in, where
    // that is another.
#pragma unroll 1
    for (int i = 0; i < 2; ++i) {
      const bool is_shared = i == 0 ? begin.unit > 0 || !ends_first : !at.ends_span() && !one_span;
      if (!is_shared) continue;
      WorkUnit span = begin;
      if (i == 1) span = at;
      const int first_unit = i == 0 ? share.begin - begin.unit : share.end - 1 - at.unit;
      combine(span, first_unit, block_of_unit(units, first_unit + span.tile.units - 1, blocks));
    }
  }
}

/// Adds up four elements of row r, from d on, of the partials that the items first .. last hold.
template <int Rows, int ValueSize, class Team, class Partial>
CERMET_DEVICE PartialRow add_partials(int first, int last, int r, int d, Partial&& partial) {
  constexpr int at_once = 8;
  PartialRow total;
#pragma unroll 1
  for (int from = first; from <= last; from += at_once) {
    float maximum[at_once], sum[at_once];
    float4 output[at_once];
#pragma unroll
    for (int k = 0; k < at_once; ++k) {
      float* other = partial(min_of(from + k, last));
      maximum[k] = __ldcg(other + r);
      sum[k] = __ldcg(other + Rows + r);
      output[k] = __ldcg(reinterpret_cast<const float4*>(Partials<Rows, ValueSize, Team>::output(other, r, d)));
    }
    float top = total.maximum;
#pragma unroll
    for (int k = 0; k < at_once; ++k) top = fmaxf(top, maximum[k]);
    total.rescale(top);
#pragma unroll
    for (int k = 0; k < at_once; ++k)
      if (from + k <= last) total.add(maximum[k], sum[k], {output[k].x, output[k].y, output[k].z, output[k].w}, top);
  }
  return total;
}

/// Partials whose maxima and sums fit a warp's stages.
template <DecodeConfig C>
inline constexpr int most_combined = min_of(64, decode_stage_bytes(C.head_size, C.value_size, C.tile_keys,
                                                                   cached_bytes<C.kv>) *
                                                    C.stages / (8 * C.rows));

/// Combines the partials of a span, of which the item `block` holds the last, and writes its rows, unless that is for
/// another item to do. `begin`: the span's first unit; `sums`: shared memory for the maxima and sums of
/// most_combined<C>.
template <DecodeConfig C, class Team>
CERMET_DEVICE void combine(const Params& p, const WorkUnit& span, const Partials<C.rows, C.value_size, Team>& partials,
                           int units, int begin, int block, float* sums) {
  using SpanPartials = Partials<C.rows, C.value_size, Team>;
  constexpr int threads = Team::size, at_once = 8;
  const int first = block_of_unit(units, begin, partials.blocks),
            first_number = share_of(units, first, partials.blocks).begin < begin ? 1 : 0;
  if constexpr (Team::together) partials.wait(first, block - 1);
  else if (!partials.take_if_complete(first, block, first_number)) return;
  const auto partial = [&](int i) { return partials.partial(i, i == first ? first_number : 0); };
  constexpr int quads = C.value_size / 4,
                groups = (C.rows * quads + threads - 1) / threads;  // groups of four elements of a thread
  PartialRow total[groups];
  for (int from = first; from <= block; from += most_combined<C>) {  // once, but for very many blocks
    const int count = min_of(most_combined<C>, block + 1 - from);
    for (int i = static_cast<int>(Team::rank()); i < count * 2 * C.rows; i += threads)
      sums[i] = __ldcg(partial(from + i / (2 * C.rows)) + i % (2 * C.rows));
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
          output[k] = __ldcg(
              reinterpret_cast<const float4*>(SpanPartials::output(partial(from + min_of(j + k, count - 1)), r, d)));
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
