// Decoding attention as part of a walk (walk.cuh), whose blocks form no clusters: a span's tiles of keys are dealt out to several blocks in turn
// (decode_span.cuh), which leave their parts in memory, and the last of the span's items adds them up. In a walk the parts say by themselves that they are
// there; a launch of its own has flags for them (decode_parts.cuh). The bits are the same.
#pragma once

#include "kernel/cuda/device/attention/decode_parts.cuh"
#include "kernel/cuda/device/attention/decode_span.cuh"
#include "kernel/cuda/device/meeting.cuh"

namespace cermet::attention {

/// Parts that items leave in a walk: item i's begins part_floats * i floats from `base`.
template <int Rows, int ValueSize, class Team>
struct LeftParts {
  using Layout = Parts<Rows, ValueSize, Team>;
  static constexpr int part_floats = decode_part_floats(Rows, ValueSize);
  static_assert(part_floats % 4 == 0);
  float* base;

  __device__ __forceinline__ float* part(int item) const { return base + item * int64_t{part_floats}; }
  __device__ __forceinline__ void write(int item, int r, int d, const RowPart& x) const {
    meeting::leave(Layout::output(part(item), r, d), x.output);
    if (d == 0) meeting::leave(part(item) + r, x.maximum), meeting::leave(part(item) + Rows + r, x.sum);
  }
  static constexpr bool asks_again = true;
  __device__ __forceinline__ void look(int item, int r, int d, RowPart& x) const {
    meeting::look(Layout::output(part(item), r, d), x.output);
    x.maximum = meeting::look(part(item) + r);
    x.sum = meeting::look(part(item) + Rows + r);
  }
  static __device__ __forceinline__ bool is_there(const RowPart& x) {
    bool there = meeting::is_there(x.maximum) && meeting::is_there(x.sum);
#pragma unroll
    for (int e = 0; e < 4; ++e) there = there && meeting::is_there(x.output[e]);
    return there;
  }
  __device__ __forceinline__ void announce(int) const {}
  __device__ __forceinline__ bool take(int, int last, int item) const { return item == last; }
};

/// The same of a launch of its own.
template <int Rows, int ValueSize, class Team>
struct FlaggedParts {
  Parts<Rows, ValueSize, Team> parts;

  __device__ __forceinline__ void write(int item, int r, int d, const RowPart& x) const { parts.write(parts.part(item, 0), r, d, x); }
  static constexpr bool asks_again = false;
  __device__ __forceinline__ void look(int item, int r, int d, RowPart& x) const {
    const float* const part = parts.part(item, 0);
    const float4 output = __ldcg(reinterpret_cast<const float4*>(parts.output(parts.part(item, 0), r, d)));
    x = {__ldcg(part + r), __ldcg(part + Rows + r), {output.x, output.y, output.z, output.w}};
  }
  static __device__ __forceinline__ bool is_there(const RowPart&) { return true; }
  /// Where all items run together, the last one of a span says nothing, and waits for the others.
  __device__ __forceinline__ void announce(int item) const { parts.announce(item, 0); }
  __device__ __forceinline__ bool take(int first, int last, int item) const {
    if constexpr (Team::together) {
      if (item == last) parts.wait(first, last);
      return item == last;
    } else {
      return parts.take_if_complete(first, last, 0);
    }
  }
};

template <DecodeConfig C, class Team>
struct DecodePieces {
  using Span = DecodeSpan<C, Team>;
  using Block = typename Span::Block;
  static constexpr int pieces = C.ranks, threads = Block::threads, quads = C.value_size / 4, at_once = min_of(8, pieces);

  /// Parts first, first + step, .. of a span, whose items begin with `item`, of four elements; added in this order.
  template <class Parts>
  static __device__ __forceinline__ RowPart add(const Parts& parts, int item, int r, int d, int first, int step) {
    RowPart total;
#pragma unroll 1
    for (int from = first; from < pieces; from += at_once * step) {
      RowPart part[at_once];
#pragma unroll
      for (int k = 0; k < at_once; ++k)
        if (from + k * step < pieces) parts.look(item + from + k * step, r, d, part[k]);
      // All that are missing are asked for at once: one after the other, each would take a way to the L2 and back.
      if constexpr (Parts::asks_again) {
        for (bool missing = true; missing;) {
          missing = false;
#pragma unroll
          for (int k = 0; k < at_once; ++k)
            if (from + k * step < pieces && !Parts::is_there(part[k])) missing = true, parts.look(item + from + k * step, r, d, part[k]);
        }
      }
      float top = total.maximum;
#pragma unroll
      for (int k = 0; k < at_once; ++k)
        if (from + k * step < pieces) top = fmaxf(top, part[k].maximum);
      total.rescale(top);
#pragma unroll
      for (int k = 0; k < at_once; ++k)
        if (from + k * step < pieces)
          total.add(part[k].maximum, part[k].sum, {part[k].output[0], part[k].output[1], part[k].output[2], part[k].output[3]}, top);
    }
    return total;
  }

  /// Adds up all parts of a span and writes its rows. Groups of threads share the parts where there are enough of them. `exchange`: memory for one RowPart of
  /// every thread.
  template <class Parts>
  static __device__ __forceinline__ void merge(const attention::Params& p, const Place& at, const Parts& parts, int item, RowPart* exchange) {
    const int rank = static_cast<int>(Team::rank()), count = at.tile.rows * quads, groups = min_of(threads / count, pieces);
    if (groups <= 1) {
      for (int i = rank; i < count; i += threads) write_row<C>(p, at.tile, at.head, i / quads, i % quads * 4, add(parts, item, i / quads, i % quads * 4, 0, 1));
      return;
    }
    const int group = rank / count, i = rank % count, r = i / quads, d = i % quads * 4;
    RowPart total;
    if (group < groups) total = add(parts, item, r, d, group, groups);
    if (group > 0) exchange[rank] = total;
    Team::sync();
    if (group > 0) return;
    float top = total.maximum;
    for (int g = 1; g < groups; ++g) top = fmaxf(top, exchange[g * count + i].maximum);
    total.rescale(top);
    for (int g = 1; g < groups; ++g) {
      const RowPart& other = exchange[g * count + i];
      total.add(other.maximum, other.sum, {other.output[0], other.output[1], other.output[2], other.output[3]}, top);
    }
    write_row<C>(p, at.tile, at.head, r, d, total);
  }

  template <class Parts>
  static __device__ __forceinline__ void run(const DecodeParams& params, uint32_t item, char* smem, const Parts& parts) {
    const attention::Params& p = params.a;
    const typename Block::Shared shared(smem);
    Span::warm(p, item);
    Block::prepare(shared);
    Place at;
    if (!Span::begin(p, item, at)) return;
    typename Span::Tile::State state;
    Span::attend(params, at, shared, state);
    const int own = static_cast<int>(item), first = own - at.rank, last = first + pieces - 1;
    // Through stage 0: warps may have had different numbers of tiles, but none has copies under way.
    Block::add_warps(shared, at.tile.rows, state, 0, [&](int, int r, int d, const RowPart& x) {
      if constexpr (pieces == 1) write_row<C>(p, at.tile, at.head, r, d, x);
      else parts.write(own, r, d, x);
    });
    if constexpr (pieces > 1) {
      parts.announce(own);
      if (!parts.take(first, last, own)) return;
      if constexpr (C.head_size % 16 != 0) Team::sync();  // warps have prepared their stages, where the exchange is
      static_assert(threads * static_cast<int>(sizeof(RowPart)) <= C.warps * C.stages * Block::stage_bytes);
      merge(p, at, parts, first, reinterpret_cast<RowPart*>(smem + decode_control_bytes(C.warps, C.rows)));
      Team::sync();  // the next item's shared memory
    }
  }
};

template <DecodeConfig C>
struct DecodePiecesTask {
  using Params = DecodeParams;

  template <class Team>
  static __device__ __forceinline__ void run(const Params& p, uint32_t item, Team, char* smem) {
    DecodePieces<C, Team>::run(p, item, smem, FlaggedParts<C.rows, C.value_size, Team>{{p.a.partials, p.thread_blocks}});
  }

  /// In a walk: before earlier tasks have ended, then what is left to do. `meeting`: decode_part_floats() floats for each item.
  template <class Team>
  static __device__ __forceinline__ void prepare(const Params& p, uint32_t item, Team team, const Meeting& meeting) {
#if CERMET_ARCH >= 900
    constexpr int part_bytes = 4 * decode_part_floats(C.rows, C.value_size);
    if (C.ranks > 1) meeting::clear(meeting.next + int64_t{item} * part_bytes, part_bytes, static_cast<int>(team.rank()), Team::size);
    // The first warp waits for earlier tasks.
    if (team.warp() > 0) DecodeSpan<C, Team>::fetch(p.a, item, static_cast<int>(team.rank()) - 32);
#endif
  }
  template <class Team>
  static __device__ __forceinline__ void meet(const Params& p, uint32_t item, Team, char* smem, const Meeting& meeting) {
    DecodePieces<C, Team>::run(p, item, smem, LeftParts<C.rows, C.value_size, Team>{reinterpret_cast<float*>(meeting.now)});
  }
};

}  // namespace cermet::attention
