// One rank's end of a channel: puts parts into other ranks' windows, and waits until theirs have come.
#pragma once

#include "kernel/cuda/device/peer/link.hpp"
#include "kernel/cuda/device/ptx/global.cuh"
#include "kernel/cuda/device/ptx/system.cuh"
#include "kernel/cuda/device/team.cuh"

namespace cermet::peer {

/// All threads of the team that is the channel's block make the same calls.
class Channel {
 public:
  CERMET_DEVICE Channel(const Link& link, uint32_t number)
      : link_(link),
        number_(number),
        exchanges_(ptx::load_relaxed(&state(link.rank).exchanges)),
        failed_(ptx::load_relaxed(&header().failed)) {}

  /// Begins the next exchange.
  CERMET_DEVICE void begin() { ++exchanges_; }
  /// Where the part of rank `from` of the present exchange lies in the memory of rank `to`.
  template <class T>
  CERMET_DEVICE T* slot(int to, int from) const {
    return reinterpret_cast<T*>(link_.memory[to] + slot_offset(link_.ranks, number_, exchanges_ % 2, from));
  }
  /// The same of words that say by themselves that they have come.
  CERMET_DEVICE ptx::WordPair* stamped_slot(int to, int from) const {
    return reinterpret_cast<ptx::WordPair*>(link_.memory[to] +
                                            stamped_offset(link_.ranks, number_, exchanges_ % 2, from));
  }
  CERMET_DEVICE uint32_t stamp() const { return exchanges_; }
  CERMET_DEVICE bool has_failed() const { return failed_ != 0; }
  /// Tells the others that this rank's parts are written, and waits for theirs. False on all threads where some rank
  /// did not arrive.
  template <class Team>
  CERMET_DEVICE bool exchange(Team team) {
    team.sync();
    const int other = static_cast<int>(team.rank());
    bool stuck = false;
    if (other < link_.ranks && other != link_.rank) {
      ptx::store_release_system(&state(other).arrived[link_.rank], exchanges_);
      const uint32_t* const flag = &state(link_.rank).arrived[other];
      stuck = failed_ != 0 || !comes([&] {
                return static_cast<int32_t>(ptx::load_acquire_system(flag) - exchanges_) >= 0 ? -1 : other;
              });
    }
    return !team.any(stuck);
  }
  /// Looks until missing() is negative; else it is a rank whose stores are not there. False where they do not come.
  template <class Missing>
  CERMET_DEVICE bool comes(Missing missing) const {
    constexpr uint32_t turns = 1024;  // between looks at the clock and at host memory, which take longer
    uint64_t begin = 0;
    for (uint32_t turn = 1;; ++turn) {
      const int other = missing();
      if (other < 0) return true;
      if (turn % turns == 0 && !goes_on(other, begin)) return false;
    }
  }
  /// After the last exchange of a launch.
  template <class Team>
  CERMET_DEVICE void close(Team team) {
    if (team.rank() == 0) state(link_.rank).exchanges = exchanges_;
  }

 private:
  CERMET_DEVICE Header& header() const { return *reinterpret_cast<Header*>(link_.memory[link_.rank]); }
  CERMET_DEVICE ChannelState& state(int rank) const {
    return reinterpret_cast<Header*>(link_.memory[rank])->channels[number_];
  }

  /// Whether to wait longer for rank `other`; `begin`: of the wait, 0 at first.
  __device__ bool goes_on(int other, uint64_t& begin) const {
    const uint64_t now = ptx::nanoseconds();
    if (begin == 0) begin = now;
    const bool late = now - begin > link_.timeout;
    if (!late && ptx::load_acquire_system(&link_.board->end) == 0) return true;
    if (atomicExch(&header().failed, 1u) == 0 && late) report(other);
    return false;
  }
  __device__ void report(int other) const {
    Board& board = *link_.board;
    board.call = link_.call;
    board.exchange = exchanges_;
    board.rank = static_cast<uint32_t>(other);
    board.channel = number_;
    ptx::store_release_system(&board.stuck, 1);
  }

  const Link& link_;
  uint32_t number_, exchanges_, failed_;
};

}  // namespace cermet::peer
