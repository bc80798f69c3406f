// Decoding attention as a task of a walk (walk.cuh), whose blocks form no clusters: a span's tiles of keys are dealt
// out to several blocks in turn (decode_split.cuh), which leave their partials in memory, and the last of the span's
// items adds them up, or, in a walk with a block for each item, every item some of the elements. In a walk the partials
// say by themselves that they are there; a launch of its own has flags for them (decode_epilogue.cuh). The bits are the
// same.
#pragma once

#include "kernel/cuda/device/attention/decode_epilogue.cuh"
#include "kernel/cuda/device/attention/decode_split.cuh"
#include "kernel/cuda/device/meeting.cuh"

namespace cermet::attention {

/// Partials that items leave in a walk: item i's begins partial_floats * i floats from `base`.
template <int Rows, int ValueSize, class Team>
struct MailboxPartials {
  using Layout = Partials<Rows, ValueSize, Team>;
  static constexpr int partial_floats = decode_partial_floats(Rows, ValueSize);
  static_assert(partial_floats % 4 == 0);
  float* base;
  bool all_add;  ///< every item of a span runs at the same time, and adds up its share of the elements; otherwise the
                 ///< last one does all

  CERMET_DEVICE float* partial(int item) const { return base + item * int64_t{partial_floats}; }
  CERMET_DEVICE void write(int item, int r, int d, const PartialRow& x) const {
    meeting::leave(Layout::output(partial(item), r, d), x.output);
    if (d == 0) meeting::leave(partial(item) + r, x.maximum), meeting::leave(partial(item) + Rows + r, x.sum);
  }
  static constexpr bool asks_again = true;
  CERMET_DEVICE void look(int item, int r, int d, PartialRow& x) const {
    meeting::look(Layout::output(partial(item), r, d), x.output);
    x.maximum = meeting::look(partial(item) + r);
    x.sum = meeting::look(partial(item) + Rows + r);
  }
  static CERMET_DEVICE bool is_there(const PartialRow& x) {
    bool there = meeting::is_there(x.maximum) && meeting::is_there(x.sum);
#pragma unroll
    for (int e = 0; e < 4; ++e) there = there && meeting::is_there(x.output[e]);
    return there;
  }
  CERMET_DEVICE void publish(int) const {}
  CERMET_DEVICE bool take(int, int last, int item) const { return all_add || item == last; }
};

/// The same of a launch of its own.
template <int Rows, int ValueSize, class Team>
struct FlaggedPartials {
  Partials<Rows, ValueSize, Team> partials;

  CERMET_DEVICE void write(int item, int r, int d, const PartialRow& x) const {
    partials.write(partials.partial(item, 0), r, d, x);
  }
  static constexpr bool asks_again = false, all_add = false;
  CERMET_DEVICE void look(int item, int r, int d, PartialRow& x) const {
    const float* const partial = partials.partial(item, 0);
    const float4 output = __ldcg(reinterpret_cast<const float4*>(partials.output(partials.partial(item, 0), r, d)));
    x = {__ldcg(partial + r), __ldcg(partial + Rows + r), {output.x, output.y, output.z, output.w}};
  }
  static CERMET_DEVICE bool is_there(const PartialRow&) { return true; }
  /// Where all items run together, the last one of a span publishes nothing, and waits for the others.
  CERMET_DEVICE void publish(int item) const { partials.publish(item, 0); }
  CERMET_DEVICE bool take(int first, int last, int item) const {
    if constexpr (Team::together) {
      if (item == last) partials.wait(first, last);
      return item == last;
    } else {
      return partials.take_if_complete(first, last, 0);
    }
  }
};

template <DecodeConfig C, class Team>
struct DecodePieces {
  using Split = DecodeSplit<C, Team>;
  using Mainloop = typename Split::Mainloop;
  static constexpr int pieces = C.ranks, threads = Mainloop::threads, quads = C.value_size / 4, each = (pieces + 7) / 8;

  /// Groups of four elements first .. first + 3 of a span, whose items begin with `item`, by a warp: lane l adds up
  /// partials l / 4, l / 4 + 8, .. of group first + l % 4; then the lanes of a group meet. Each step has the same order
  /// wherever it is computed.
  template <class Partials>
  static CERMET_DEVICE void combine(const attention::Params& p, const WorkUnit& at, const Partials& partials, int item,
                                    int first) {
    const int lane = static_cast<int>(lane_index()), own = lane / 4, count = at.tile.rows * quads;
    const int i = min_of(first + lane % 4, count - 1), r = i / quads, d = i % quads * 4;
    PartialRow partial[each];
#pragma unroll
    for (int k = 0; k < each; ++k)
      if (own + 8 * k < pieces) partials.look(item + own + 8 * k, r, d, partial[k]);
    // All that are missing are asked for at once: one after the other, each would take a way to the L2 and back.
    if constexpr (Partials::asks_again) {
      for (bool missing = true; missing;) {
        missing = false;
#pragma unroll
        for (int k = 0; k < each; ++k)
          if (own + 8 * k < pieces && !Partials::is_there(partial[k]))
            missing = true, partials.look(item + own + 8 * k, r, d, partial[k]);
      }
    }
    PartialRow total = partial[0];
#pragma unroll
    for (int k = 1; k < each; ++k) total = sum_of(total, partial[k]);
    __syncwarp();
#pragma unroll
    for (int width = 16; width >= 4; width /= 2) {
      PartialRow other{
          __shfl_down_sync(0xffffffffu, total.maximum, width), __shfl_down_sync(0xffffffffu, total.sum, width), {}};
#pragma unroll
      for (int e = 0; e < 4; ++e) other.output[e] = __shfl_down_sync(0xffffffffu, total.output[e], width);
      total = sum_of(total, other);
    }
    if (own == 0 && first + lane < count) write_row<C>(p, at.tile, at.head, r, d, total);
  }
  static CERMET_DEVICE PartialRow sum_of(PartialRow a, const PartialRow& b) {
    const float top = fmaxf(a.maximum, b.maximum);
    a.rescale(top);
    a.add(b.maximum, b.sum, {b.output[0], b.output[1], b.output[2], b.output[3]}, top);
    return a;
  }

  template <class Partials>
  static CERMET_DEVICE void run(const DecodeParams& params, uint32_t item, char* smem, const Partials& partials) {
    const attention::Params& p = params.a;
    const typename Mainloop::Shared shared(smem);
    Split::prefetch_tables(p, item);
    Mainloop::prepare(shared);
    WorkUnit at;
    if (!Split::begin(p, item, at)) return;
    typename Split::Mma::State state;
    Split::attend(params, at, shared, state);
    const int own = static_cast<int>(item), first = own - at.rank, last = first + pieces - 1;
    // Through stage 0: warps may have had different numbers of tiles, but none has copies under way.
    combine_warps<C, Team>(shared, at.tile.rows, state, 0, [&](int, int r, int d, const PartialRow& x) {
      if constexpr (pieces == 1) write_row<C>(p, at.tile, at.head, r, d, x);
      else partials.write(own, r, d, x);
    });
    if constexpr (pieces > 1) {
      partials.publish(own);
      if (!partials.take(first, last, own)) return;
      // Four groups are a warp's work, of this block or of all that have the span.
      const int warp = static_cast<int>(Team::warp()), count = at.tile.rows * quads;
      const int begin = partials.all_add ? warp * pieces + at.rank : warp,
                step = partials.all_add ? C.warps * pieces : C.warps;
#pragma unroll 1
      for (int i = begin; 4 * i < count; i += step) combine(p, at, partials, first, 4 * i);
    }
  }
};

template <DecodeConfig C>
struct DecodePiecesTask {
  using Params = DecodeParams;

  template <class Team>
  static CERMET_DEVICE void run(const Params& p, uint32_t item, Team, char* smem) {
    DecodePieces<C, Team>::run(p, item, smem,
                               FlaggedPartials<C.rows, C.value_size, Team>{{p.a.partials, p.thread_blocks}});
  }

  /// In a walk: before earlier tasks have ended, where `early`, then what is left to do. `meeting`:
  /// decode_partial_floats() floats for each item.
  template <class Team>
  static CERMET_DEVICE void prepare(const Params& p, uint32_t item, Team team, const Meeting& meeting, bool early) {
#if CERMET_ARCH >= 900
    constexpr int partial_bytes = 4 * decode_partial_floats(C.rows, C.value_size);
    if (C.ranks > 1)
      meeting::clear(meeting.next + int64_t{item} * partial_bytes, partial_bytes, static_cast<int>(team.rank()),
                     Team::size);
    // The first warp waits for earlier tasks.
    if (early && team.warp() > 0) DecodeSplit<C, Team>::fetch(p.a, item, static_cast<int>(team.rank()) - 32);
#endif
  }
  template <class Team>
  static CERMET_DEVICE void meet(const Params& p, uint32_t item, Team, char* smem, const Meeting& meeting) {
    DecodePieces<C, Team>::run(
        p, item, smem,
        MailboxPartials<C.rows, C.value_size, Team>{reinterpret_cast<float*>(meeting.now), meeting.together});
  }
};

}  // namespace cermet::attention
