// Collectives between GPUs that address each other's memory: parts are pushed into the windows of the ranks that need
// them, so that everybody waits for, and reads, memory of its own. One work item: a channel's share of the pieces. It
// waits for the same item of the other ranks' launches.
#pragma once

#include "kernel/cuda/device/movement/axes.cuh"
#include "kernel/cuda/device/overlap.cuh"
#include "kernel/cuda/device/peer/channel.cuh"
#include "kernel/cuda/device/peer/collective.hpp"
#include "kernel/cuda/device/peer/reduction.cuh"
#include "kernel/cuda/device/peer/stamped.cuh"

namespace cermet::peer {

/// Units that go with one exchange.
template <class Unit>
CERMET_DEVICE int64_t room_of(Protocol protocol) {
  return (protocol == Protocol::stamped ? stamped_data_bytes : slot_bytes) / static_cast<int64_t>(sizeof(Unit));
}

/// The items [begin, end) of `count` that a channel has.
struct Share {
  int64_t begin, end;
  CERMET_DEVICE Share(int64_t count, uint32_t channels, uint32_t channel) {
    const int64_t each = div_up(count, channels);
    begin = min_of(each * channel, count);
    end = min_of(begin + each, count);
  }
};

/// Puts `count` units of each piece that goes to other ranks, from unit `first` of the piece on, into the windows.
template <class Unit, class Team>
CERMET_DEVICE void push(Team team, const Params& p, const Channel& channel, int64_t first, int64_t count,
                        int64_t piece) {
  const Unit* const x = static_cast<const Unit*>(p.x) + first;
  for (int64_t u = team.rank(); u < count; u += Team::size)
#pragma unroll 1
    for (int to = 0; to < p.link.ranks; ++to)
      if (to != p.link.rank && (p.to >> to & 1u))
        channel.slot<Unit>(to, p.link.rank)[u] = x[(p.cuts ? to * piece : 0) + u];
}

/// The next launch may start: at once where a rank has its GPU alone, so that it asks for its weights meanwhile; else
/// after the last exchange of a channel, because its blocks could keep another rank on the same device from arriving.
CERMET_DEVICE void begins(const Link& link) {
  if (link.alone) start_next_launch();
}
CERMET_DEVICE void exchanged(const Link& link, bool last) {
  if (last && !link.alone) start_next_launch();
}

/// Of ranks that all give something to each other. Their units are taken one after the other: they come at about the
/// same time.
template <class Unit, class Team>
CERMET_DEVICE bool move_stamped(Team team, const Params& p, const Channel& channel, int64_t at, int64_t count) {
  const Link& link = p.link;
  const Unit* const x = static_cast<const Unit*>(p.x) + at;
  Unit* const y = static_cast<Unit*>(p.y) + at;
  put_stamped<Unit>(team, link, channel, x, count, p.cuts ? p.piece : 0);
  bool stuck = channel.has_failed();
  for (int64_t u = team.rank(); u < count && !stuck; u += Team::size)
#pragma unroll 1
    for (int from = 0; from < link.ranks && !stuck; ++from) {
      Unit* const target = y + (p.joins ? from * p.piece : 0) + u;
      if (from == link.rank) {
        *target = x[(p.cuts ? from * p.piece : 0) + u];
        continue;
      }
      Stamped<Unit> theirs;
      stuck = !channel.comes([&] {
        theirs.load(channel.stamped_slot(link.rank, from), u);
        return theirs.has(channel.stamp()) ? -1 : from;
      });
      *target = theirs.unit();
    }
  return !team.any(stuck);
}

template <class Unit, class Team>
CERMET_DEVICE void move(Team team, const Params& p, uint32_t item) {
  const int64_t room = room_of<Unit>(p.protocol);
  begins(p.link);
  Channel channel(p.link, item);
  const Share share(p.piece, p.channels, item);
  for (int64_t at = share.begin; at < share.end; at += room) {
    channel.begin();
    const int64_t count = min_of(room, share.end - at);
    if constexpr (can_be_stamped<Unit>) {
      if (p.protocol == Protocol::stamped) {
        if (!move_stamped<Unit>(team, p, channel, at, count)) return;
        exchanged(p.link, at + room >= share.end);
        continue;
      }
    }
    push<Unit>(team, p, channel, at, count, p.piece);
    if (!channel.exchange(team)) return;
    exchanged(p.link, at + room >= share.end);
    Unit* const y = static_cast<Unit*>(p.y) + at;
    for (int from = 0; from < p.link.ranks; ++from) {
      if (!(p.from >> from & 1u)) continue;
      const bool own = from == p.link.rank;
      const Unit* const part = own ? static_cast<const Unit*>(p.x) + (p.cuts ? from * p.piece : 0) + at
                                   : channel.slot<const Unit>(p.link.rank, from);
      Unit* const target = y + (p.joins ? from * p.piece : 0);
      if (target != part)
        for (int64_t u = team.rank(); u < count; u += Team::size) target[u] = part[u];
    }
    if (p.from == 0)
      for (int piece = 0; piece < (p.joins ? p.link.ranks : 1); ++piece)
        for (int64_t u = team.rank(); u < count; u += Team::size) y[piece * p.piece + u] = Unit{};
  }
  channel.close(team);
}

struct Move {
  using Params = peer::Params;
  static constexpr Overlap overlap = Overlap::own;

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char*) {
    by_word_size(p.word_bytes, [&](auto zero) { move<decltype(zero)>(team, p, item); });
  }
};

template <ReduceConfig C>
using UnitOf = Vector<Element<C.reduction.type>, C.width>;

/// Of a part of each rank.
template <ReduceConfig C>
CERMET_DEVICE UnitOf<C> reduced(const UnitOf<C> (&part)[C.reduction.ranks]) {
  UnitOf<C> y;
#pragma unroll
  for (int i = 0; i < C.width; ++i) {
    Reduction<C.reduction> reduction;
#pragma unroll
    for (int r = 0; r < C.reduction.ranks; ++r) reduction.add(part[r][i]);
    y[i] = reduction.result();
  }
  return y;
}

/// Unit `u` of what all ranks gave with the present exchange, of which this one's own is own[u].
template <ReduceConfig C>
CERMET_DEVICE UnitOf<C> reduced(const Link& link, const Channel& channel, const UnitOf<C>* own, int64_t u) {
  UnitOf<C> part[C.reduction.ranks];
#pragma unroll
  for (int r = 0; r < C.reduction.ranks; ++r)
    part[r] = r == link.rank ? own[u] : channel.slot<const UnitOf<C>>(link.rank, r)[u];
  return reduced<C>(part);
}

/// Reduces `count` units of what ranks put into each other's stamped windows; own: this rank's.
template <ReduceConfig C, class Team>
CERMET_DEVICE bool reduce_stamped(Team team, const Link& link, const Channel& channel, const UnitOf<C>* own,
                                  int64_t count, UnitOf<C>* y) {
  const auto use = [&](int64_t u, const UnitOf<C>(&part)[C.reduction.ranks]) { y[u] = reduced<C>(part); };
  return take_stamped<C.reduction.ranks, 1>(team, link, channel, own, count, use);
}

template <ReduceConfig C>
struct Reduce {
  using Params = peer::Params;
  static constexpr Overlap overlap = Overlap::own;
  using Unit = UnitOf<C>;
  static constexpr int ranks = C.reduction.ranks;

  template <class Team>
  static CERMET_DEVICE bool one_shot(const Params& p, Channel& channel, Team team, int64_t at, int64_t count,
                                     bool last) {
    const int64_t piece = p.piece / C.width;
    const Unit* const x = static_cast<const Unit*>(p.x) + at;
    const Unit* const own = x + (p.cuts ? p.link.rank * piece : 0);
    Unit* const y = static_cast<Unit*>(p.y) + at;
    channel.begin();
    if constexpr (can_be_stamped<Unit>) {
      if (p.protocol == Protocol::stamped) {
        put_stamped<Unit>(team, p.link, channel, x, count, p.cuts ? piece : 0);
        if (!reduce_stamped<C>(team, p.link, channel, own, count, y)) return false;
        exchanged(p.link, last);
        return true;
      }
    }
    push<Unit>(team, p, channel, at, count, piece);
    if (!channel.exchange(team)) return false;
    exchanged(p.link, last);
#pragma unroll 1
    for (int64_t u = team.rank(); u < count; u += Team::size)
      y[u] = p.from ? reduced<C>(p.link, channel, own, u) : Unit{};
    return true;
  }

  /// Of all_reduce: rank r reduces the r-th share of the units.
  template <class Team>
  static CERMET_DEVICE bool two_shot(const Params& p, Channel& channel, Team team, int64_t at, int64_t count,
                                     bool last) {
    const int64_t each = div_up(count, ranks);
    const auto first = [&](int r) { return min_of(each * r, count); };
    const int me = p.link.rank;
    const Unit* const x = static_cast<const Unit*>(p.x) + at;
    Unit* const y = static_cast<Unit*>(p.y) + at;
    channel.begin();
#pragma unroll
    for (int r = 0; r < ranks; ++r)
      if (r != me)
#pragma unroll 1
        for (int64_t u = first(r) + team.rank(); u < first(r + 1); u += Team::size)
          channel.slot<Unit>(r, me)[u - first(r)] = x[u];
    if (!channel.exchange(team)) return false;
    const Channel gathered = channel;  // of the window that has come
    channel.begin();
#pragma unroll 1
    for (int64_t u = team.rank(); u < first(me + 1) - first(me); u += Team::size) {
      const Unit sum = reduced<C>(p.link, gathered, x + first(me), u);
      y[first(me) + u] = sum;
#pragma unroll
      for (int r = 0; r < ranks; ++r)
        if (r != me) channel.slot<Unit>(r, me)[u] = sum;
    }
    if (!channel.exchange(team)) return false;
    exchanged(p.link, last);
#pragma unroll
    for (int r = 0; r < ranks; ++r)
      if (r != me)
#pragma unroll 1
        for (int64_t u = first(r) + team.rank(); u < first(r + 1); u += Team::size)
          y[u] = channel.slot<const Unit>(me, r)[u - first(r)];
    return true;
  }

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char*) {
    begins(p.link);
    Channel channel(p.link, item);
    const Share share(p.piece / C.width, p.channels, item);
    const bool in_shares = p.protocol == Protocol::shares;
    const int64_t room = room_of<Unit>(p.protocol), step = in_shares ? room * ranks : room;
    for (int64_t at = share.begin; at < share.end; at += step) {
      const int64_t count = min_of(step, share.end - at);
      const bool last = at + step >= share.end;
      if (!(in_shares ? two_shot(p, channel, team, at, count, last) : one_shot(p, channel, team, at, count, last)))
        return;
    }
    channel.close(team);
  }
};

}  // namespace cermet::peer
