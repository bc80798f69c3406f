// Exchanges without flags: each word of 8 bytes that is put into another rank's window has 4 of data and the number of
// the exchange, so that no fence has to wait until data has arrived before a flag may follow it (the protocol that NCCL
// calls LL).
//
// A window is written again two exchanges later. Whoever does so has all words of the exchange between, whose sender
// put them after all threads of its block had read what came with the one before: take_stamped() ends with a barrier,
// or the launch does. A word that is left from the exchange 2^32 before, and was not written since, would be taken for
// a new one: a chance that is accepted.
#pragma once

#include "kernel/cuda/device/peer/channel.cuh"

namespace cermet::peer {

/// Words of 4 bytes come in pairs.
template <class Unit>
inline constexpr bool can_be_stamped = sizeof(Unit) % 8 == 0;

/// A unit of 8 or 16 bytes on its way: one or two pairs of words, the second ones of a slot after all first ones, so
/// that neighbouring threads access neighbouring pairs.
template <class Unit>
class Stamped {
 public:
  static constexpr int64_t room = stamped_data_bytes / static_cast<int64_t>(sizeof(Unit));  ///< units of a slot

  static CERMET_DEVICE void put(ptx::WordPair* slot, int64_t u, const Unit& unit, uint32_t stamp) {
    const auto data = __builtin_bit_cast(Data, unit);
    const uint64_t high = static_cast<uint64_t>(stamp) << 32;
#pragma unroll
    for (int i = 0; i < pairs; ++i)
      ptx::store_words_system(slot + i * room + u, {high | data.at[2 * i], high | data.at[2 * i + 1]});
  }
  CERMET_DEVICE void load(const ptx::WordPair* slot, int64_t u) {
#pragma unroll
    for (int i = 0; i < pairs; ++i) words_[i] = ptx::load_words_system(slot + i * room + u);
  }
  CERMET_DEVICE bool has(uint32_t stamp) const {
    bool all = true;
#pragma unroll
    for (int i = 0; i < pairs; ++i) all = all && (words_[i].first >> 32) == stamp && (words_[i].second >> 32) == stamp;
    return all;
  }
  CERMET_DEVICE Unit unit() const {
    Data data;
#pragma unroll
    for (int i = 0; i < pairs; ++i) {
      data.at[2 * i] = static_cast<uint32_t>(words_[i].first);
      data.at[2 * i + 1] = static_cast<uint32_t>(words_[i].second);
    }
    return __builtin_bit_cast(Unit, data);
  }

 private:
  static constexpr int pairs = static_cast<int>(sizeof(Unit)) / 8;
  struct Data {
    uint32_t at[2 * pairs];
  };
  ptx::WordPair words_[pairs];
};

/// How many units: known to the compiler where that saves it conditions.
template <int64_t Count>
struct FixedCount {
  static constexpr int64_t value = Count;
  CERMET_DEVICE constexpr operator int64_t() const { return Count; }
};

/// Units that a thread asks for at once: those that registers have room for, and no more than there are.
template <int Ranks, class Team, class Count>
constexpr int units_at_once() {
  constexpr int that_fit = Ranks <= 2 ? 4 : 2;
  if constexpr (requires { Count::value; })
    return static_cast<int>(min_of<int64_t>(that_fit, div_up(Count::value, static_cast<int64_t>(Team::size))));
  else return that_fit;
}

/// Puts `count` units of each piece into the windows of all other ranks, which all get the first piece where `piece` is
/// 0.
template <class Unit, class Team, class Count>
CERMET_DEVICE void put_stamped(Team team, const Link& link, const Channel& channel, const Unit* x, Count count,
                               int64_t piece) {
#pragma unroll 4
  for (int64_t u = team.rank(); u < count; u += Team::size) {
    const Unit own = x[u];
#pragma unroll 1
    for (int to = 0; to < link.ranks; ++to)
      if (to != link.rank)
        Stamped<Unit>::put(channel.stamped_slot(to, link.rank), u, piece == 0 ? own : x[to * piece + u],
                           channel.stamp());
  }
}

/// Of up to four ranks: a thread asks for some units of all of them at once. Calls use(u, units by rank); false where
/// some rank did not arrive.
template <int Ranks, int AtOnce, class Unit, class Team, class Count, class Use>
CERMET_DEVICE bool take_at_once(Team team, const Channel& channel, int me, const Unit* own, Count count, Use use) {
  constexpr int batch = AtOnce > 0 ? AtOnce : units_at_once<Ranks, Team, Count>();
  for (int64_t first = team.rank(); first < count; first += batch * Team::size) {
    Stamped<Unit> part[batch][Ranks];
    const auto each = [&](auto body) {
#pragma unroll
      for (int b = 0; b < batch; ++b)
#pragma unroll
        for (int r = 0; r < Ranks; ++r)
          if (r != me && first + b * Team::size < count) body(part[b][r], r, first + b * Team::size);
    };
    const auto missing = [&] {
      int other = -1;
      each([&](Stamped<Unit>& unit, int r, int64_t u) { unit.load(channel.stamped_slot(me, r), u); });
      each([&](const Stamped<Unit>& unit, int r, int64_t) { other = unit.has(channel.stamp()) ? other : r; });
      return other;
    };
    if (!channel.comes(missing)) return false;
#pragma unroll
    for (int b = 0; b < batch; ++b) {
      const int64_t u = first + b * Team::size;
      if (u >= count) continue;
      Unit units[Ranks];
#pragma unroll
      for (int r = 0; r < Ranks; ++r) units[r] = r == me ? own[u] : part[b][r].unit();
      use(u, units);
    }
  }
  return true;
}

/// Of more ranks, whose units would not fit into registers on the way: they are waited for first, and read again.
template <int Ranks, class Unit, class Team, class Count, class Use>
CERMET_DEVICE bool take_one_by_one(Team team, const Channel& channel, int me, const Unit* own, Count count, Use use) {
  for (int64_t u = team.rank(); u < count; u += Team::size) {
    Stamped<Unit> theirs;
    int r = 0;
    const auto missing = [&] {
#pragma unroll 1
      for (; r < Ranks; ++r) {
        if (r == me) continue;
        theirs.load(channel.stamped_slot(me, r), u);
        if (!theirs.has(channel.stamp())) return r;
      }
      return -1;
    };
    if (!channel.comes(missing)) return false;
    Unit units[Ranks];
#pragma unroll
    for (int from = 0; from < Ranks; ++from) {
      if (from != me) theirs.load(channel.stamped_slot(me, from), u);
      units[from] = from == me ? own[u] : theirs.unit();
    }
    use(u, units);
  }
  return true;
}

/// Calls use(u, units by rank) for `count` units as they come; own[u] is this rank's. False on all threads where some
/// rank did not arrive. AtOnce: units that a thread asks for at once, of up to four ranks; 0: as many as fit.
template <int Ranks, int AtOnce = 0, class Unit, class Team, class Count, class Use>
CERMET_DEVICE bool take_stamped(Team team, const Link& link, const Channel& channel, const Unit* own, Count count,
                                Use use) {
  bool came = !channel.has_failed();
  if constexpr (Ranks <= 4) came = came && take_at_once<Ranks, AtOnce>(team, channel, link.rank, own, count, use);
  else came = came && take_one_by_one<Ranks>(team, channel, link.rank, own, count, use);
  return !team.any(!came);
}

}  // namespace cermet::peer
