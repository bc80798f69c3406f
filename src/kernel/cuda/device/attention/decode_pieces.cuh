// Decoding attention as part of a walk (walk.cuh), whose blocks form no clusters: a span's tiles of keys are dealt out
// to several blocks in turn (decode_span.cuh), which leave their parts in memory, and the last of the span's items adds
// them up, or, in a walk with a block for each item, every item some of the elements. In a walk the parts say by
// themselves that they are there; a launch of its own has flags for them (decode_epilogue.cuh). The bits are the same.
#pragma once

#include "kernel/cuda/device/attention/decode_epilogue.cuh"
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
  bool all_add;  ///< every item of a span runs at the same time, and adds up its share of the elements; otherwise the
                 ///< last one does all

  CERMET_DEVICE float* part(int item) const { return base + item * int64_t{part_floats}; }
  CERMET_DEVICE void write(int item, int r, int d, const RowPart& x) const {
    meeting::leave(Layout::output(part(item), r, d), x.output);
    if (d == 0) meeting::leave(part(item) + r, x.maximum), meeting::leave(part(item) + Rows + r, x.sum);
  }
  static constexpr bool asks_again = true;
  CERMET_DEVICE void look(int item, int r, int d, RowPart& x) const {
    meeting::look(Layout::output(part(item), r, d), x.output);
    x.maximum = meeting::look(part(item) + r);
    x.sum = meeting::look(part(item) + Rows + r);
  }
  static CERMET_DEVICE bool is_there(const RowPart& x) {
    bool there = meeting::is_there(x.maximum) && meeting::is_there(x.sum);
#pragma unroll
    for (int e = 0; e < 4; ++e) there = there && meeting::is_there(x.output[e]);
    return there;
  }
  CERMET_DEVICE void announce(int) const {}
  CERMET_DEVICE bool take(int, int last, int item) const { return all_add || item == last; }
};

/// The same of a launch of its own.
template <int Rows, int ValueSize, class Team>
struct FlaggedParts {
  Parts<Rows, ValueSize, Team> parts;

  CERMET_DEVICE void write(int item, int r, int d, const RowPart& x) const {
    parts.write(parts.part(item, 0), r, d, x);
  }
  static constexpr bool asks_again = false, all_add = false;
  CERMET_DEVICE void look(int item, int r, int d, RowPart& x) const {
    const float* const part = parts.part(item, 0);
    const float4 output = __ldcg(reinterpret_cast<const float4*>(parts.output(parts.part(item, 0), r, d)));
    x = {__ldcg(part + r), __ldcg(part + Rows + r), {output.x, output.y, output.z, output.w}};
  }
  static CERMET_DEVICE bool is_there(const RowPart&) { return true; }
  /// Where all items run together, the last one of a span says nothing, and waits for the others.
  CERMET_DEVICE void announce(int item) const { parts.announce(item, 0); }
  CERMET_DEVICE bool take(int first, int last, int item) const {
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
  static constexpr int pieces = C.ranks, threads = Block::threads, quads = C.value_size / 4, each = (pieces + 7) / 8;

  /// Groups of four elements first .. first + 3 of a span, whose items begin with `item`, by a warp: lane l adds up
  /// parts l / 4, l / 4 + 8, .. of group first + l % 4; then the lanes of a group meet. Each step has the same order
  /// wherever it is computed.
  template <class Parts>
  static CERMET_DEVICE void merge(const attention::Params& p, const Place& at, const Parts& parts, int item,
                                  int first) {
    const int lane = static_cast<int>(lane_index()), own = lane / 4, count = at.tile.rows * quads;
    const int i = min_of(first + lane % 4, count - 1), r = i / quads, d = i % quads * 4;
    RowPart part[each];
#pragma unroll
    for (int k = 0; k < each; ++k)
      if (own + 8 * k < pieces) parts.look(item + own + 8 * k, r, d, part[k]);
    // All that are missing are asked for at once: one after the other, each would take a way to the L2 and back.
    if constexpr (Parts::asks_again) {
      for (bool missing = true; missing;) {
        missing = false;
#pragma unroll
        for (int k = 0; k < each; ++k)
          if (own + 8 * k < pieces && !Parts::is_there(part[k]))
            missing = true, parts.look(item + own + 8 * k, r, d, part[k]);
      }
    }
    RowPart total = part[0];
#pragma unroll
    for (int k = 1; k < each; ++k) total = sum_of(total, part[k]);
    __syncwarp();
#pragma unroll
    for (int width = 16; width >= 4; width /= 2) {
      RowPart other{
          __shfl_down_sync(0xffffffffu, total.maximum, width), __shfl_down_sync(0xffffffffu, total.sum, width), {}};
#pragma unroll
      for (int e = 0; e < 4; ++e) other.output[e] = __shfl_down_sync(0xffffffffu, total.output[e], width);
      total = sum_of(total, other);
    }
    if (own == 0 && first + lane < count) write_row<C>(p, at.tile, at.head, r, d, total);
  }
  static CERMET_DEVICE RowPart sum_of(RowPart a, const RowPart& b) {
    const float top = fmaxf(a.maximum, b.maximum);
    a.rescale(top);
    a.add(b.maximum, b.sum, {b.output[0], b.output[1], b.output[2], b.output[3]}, top);
    return a;
  }

  template <class Parts>
  static CERMET_DEVICE void run(const DecodeParams& params, uint32_t item, char* smem, const Parts& parts) {
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
    add_warps<C, Team>(shared, at.tile.rows, state, 0, [&](int, int r, int d, const RowPart& x) {
      if constexpr (pieces == 1) write_row<C>(p, at.tile, at.head, r, d, x);
      else parts.write(own, r, d, x);
    });
    if constexpr (pieces > 1) {
      parts.announce(own);
      if (!parts.take(first, last, own)) return;
      // Four groups are a warp's work, of this block or of all that have the span.
      const int warp = static_cast<int>(Team::warp()), count = at.tile.rows * quads;
      const int begin = parts.all_add ? warp * pieces + at.rank : warp,
                step = parts.all_add ? C.warps * pieces : C.warps;
#pragma unroll 1
      for (int i = begin; 4 * i < count; i += step) merge(p, at, parts, first, 4 * i);
    }
  }
};

template <DecodeConfig C>
struct DecodePiecesTask {
  using Params = DecodeParams;

  template <class Team>
  static CERMET_DEVICE void run(const Params& p, uint32_t item, Team, char* smem) {
    DecodePieces<C, Team>::run(p, item, smem,
                               FlaggedParts<C.rows, C.value_size, Team>{{p.a.partials, p.thread_blocks}});
  }

  /// In a walk: before earlier tasks have ended, where `early`, then what is left to do. `meeting`:
  /// decode_part_floats() floats for each item.
  template <class Team>
  static CERMET_DEVICE void prepare(const Params& p, uint32_t item, Team team, const Meeting& meeting, bool early) {
#if CERMET_ARCH >= 900
    constexpr int part_bytes = 4 * decode_part_floats(C.rows, C.value_size);
    if (C.ranks > 1)
      meeting::clear(meeting.next + int64_t{item} * part_bytes, part_bytes, static_cast<int>(team.rank()), Team::size);
    // The first warp waits for earlier tasks.
    if (early && team.warp() > 0) DecodeSpan<C, Team>::fetch(p.a, item, static_cast<int>(team.rank()) - 32);
#endif
  }
  template <class Team>
  static CERMET_DEVICE void meet(const Params& p, uint32_t item, Team, char* smem, const Meeting& meeting) {
    DecodePieces<C, Team>::run(
        p, item, smem, LeftParts<C.rows, C.value_size, Team>{reinterpret_cast<float*>(meeting.now), meeting.together});
  }
};

}  // namespace cermet::attention
