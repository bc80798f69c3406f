// argmax: the place of a row's largest or smallest element; NaN wins, of equal elements the first or the last. A
// cluster shares a long row; in a walk (walk.cuh), whose blocks form no clusters, so many blocks of their own do, which
// leave what they found in memory.
#pragma once

#include "kernel/cuda/device/meeting.cuh"
#include "kernel/cuda/device/movement/axes.cuh"
#include "kernel/cuda/device/reduce/order.cuh"
#include "kernel/cuda/device/sampling/argmax.hpp"
#include "kernel/cuda/device/sampling/group.cuh"

namespace cermet::argmax {

/// The best key so far and a code of its place, larger for the place that wins among equals; 0 before the first
/// element.
template <Config C>
struct Best {
  using T = Element<C.x>;
  using Key = typename OrderOf<T>::Key;
  Key key = 0;
  uint32_t place = 0;

  static CERMET_DEVICE uint32_t code(uint32_t index) { return C.last ? index + 1 : 0xffffffffu - index; }
  static CERMET_DEVICE uint32_t index(uint32_t code) { return C.last ? code - 1 : 0xffffffffu - code; }

  CERMET_DEVICE void take(T x, uint32_t i) {
    Key k = OrderOf<T>::key(x);
    if constexpr (C.smallest) {
      if (is_integral<T> || k != static_cast<Key>(~Key{0}))
        k = static_cast<Key>(~k);  // NaN wins over the smallest, too
    }
    if (place == 0 || k > key || (C.last && k == key)) key = k, place = code(i);
  }
  /// Takes what another thread or block found; nothing where that is code 0.
  CERMET_DEVICE void merge(Key k, uint32_t code) {
    if (code > 0 && (place == 0 || k > key || (k == key && code > place))) key = k, place = code;
  }
  /// The code of the winner among the threads of a group.
  template <class Group>
  CERMET_DEVICE uint32_t winner(Group& group) const {
    if constexpr (sizeof(Key) == 4)
      return static_cast<uint32_t>(group.template reduce<MaxU64>(static_cast<uint64_t>(key) << 32 | place));
    const uint64_t largest = group.template reduce<MaxU64>(place > 0 ? key : 0);
    return static_cast<uint32_t>(group.template reduce<MaxU64>(key == largest ? place : 0));
  }
};

/// One work item: a block's share of a row.
template <Config C>
struct Task {
  using Params = argmax::Params;
  using T = Element<C.x>;
  static constexpr int width = per_16_bytes<T>;

  /// The best of a share of a row: `rank` of `shares`, each of which has a team's threads.
  static CERMET_DEVICE Best<C> best_of(const Params& p, const T* x, uint32_t rank, uint32_t shares, uint32_t thread) {
    const auto length = static_cast<uint32_t>(p.length);
    const uint32_t first = rank * C.threads + thread, stride = C.threads * shares;
    Best<C> best;
    if (p.vectors) {
      const uint32_t steps = length / width;
#pragma unroll 8
      for (uint32_t s = first; s < steps; s += stride) {
        const auto v = reinterpret_cast<const Vector<T, width>*>(x)[s];
#pragma unroll
        for (int j = 0; j < width; ++j) best.take(v[j], s * width + j);
      }
      for (uint32_t i = steps * width + first; i < length; i += stride) best.take(x[i], i);
    } else {
#pragma unroll 4
      for (uint32_t i = first; i < length; i += stride) best.take(x[i], i);
    }
    return best;
  }
  static CERMET_DEVICE void write(const Params& p, int64_t at, uint32_t place) {
    const uint32_t id = Best<C>::index(place);
    if (p.wide_ids) static_cast<int64_t*>(p.y)[at] = id;
    else static_cast<int32_t*>(p.y)[at] = static_cast<int32_t>(id);
  }

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char* smem) {
    static_assert(Team::size == C.threads && Team::cluster == C.cluster);
    if (C.pieces > 1 && item % C.pieces != C.pieces - 1) return;
    Group group(team, *reinterpret_cast<GroupScratch*>(smem));
    const uint32_t row = item / (C.cluster * C.pieces), rank = C.pieces > 1 ? 0 : item % C.cluster;
    int64_t offset[2];
    offsets_at(p.rows, row, offset);
    const T* x = static_cast<const T*>(p.x) + offset[0];  // [length]
    const uint32_t place = best_of(p, x, rank, C.cluster, team.rank()).winner(group);
    if (rank == 0 && team.rank() == 0) write(p, offset[1], place);
    group.barrier();  // other blocks may still read this one's shared memory, and the next row reuses it
  }

  /// In a walk: the memory of an item for the next run.
  template <class Team>
  requires(C.pieces > 1) static __device__
      void prepare(const Params&, uint32_t item, Team team, const Meeting& meeting, bool) {
    meeting::clear(meeting.next + item * part_bytes, part_bytes, static_cast<int>(team.rank()), Team::size);
  }
  /// Every piece but the last leaves what it found; the last waits for the others of its row.
  template <class Team>
  requires(C.pieces > 1) static __device__
      void meet(const Params& p, uint32_t item, Team team, char* smem, const Meeting& meeting) {
    static_assert(C.cluster == 1 && sizeof(typename Best<C>::Key) == 4 && C.pieces <= C.threads);
    Group group(team, *reinterpret_cast<GroupScratch*>(smem));
    const uint32_t row = item / C.pieces, piece = item % C.pieces, thread = team.rank();
    int64_t offset[2];
    offsets_at(p.rows, row, offset);
    const T* x = static_cast<const T*>(p.x) + offset[0];
    Best<C> best = best_of(p, x, piece, C.pieces, thread);
    if (piece + 1 < C.pieces) {
      const uint64_t found = group.template reduce<MaxU64>(static_cast<uint64_t>(best.key) << 32 | best.place);
      // The index, which is never the mark of what is absent; a piece without elements leaves no place in a row.
      const auto code = static_cast<uint32_t>(found);
      if (thread == 0)
        leave(meeting.now + item * part_bytes, static_cast<uint32_t>(found >> 32),
              code == 0 ? none : Best<C>::index(code));
    } else {
      if (thread + 1 < C.pieces) {
        const char* const from = meeting.now + (row * C.pieces + thread) * part_bytes;
        uint32_t key, index;
        do look(from, key, index);
        while (index == meeting::absent);
        if (index != none) best.merge(key, Best<C>::code(index));
      }
      const uint32_t place = best.winner(group);
      if (thread == 0) write(p, offset[1], place);
    }
    team.sync();
  }

 private:
  static constexpr int part_bytes = 16;
  static constexpr uint32_t none = 0xfffffffeu;  ///< in place of an index, all of which are below 2^31

  static CERMET_DEVICE void leave(char* to, uint32_t key, uint32_t index) {
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(to), "l"(static_cast<uint64_t>(index) << 32 | key)
                 : "memory");
  }
  static CERMET_DEVICE void look(const char* from, uint32_t& key, uint32_t& index) {
    uint64_t both;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(both) : "l"(from) : "memory");
    key = static_cast<uint32_t>(both);
    index = static_cast<uint32_t>(both >> 32);
  }
};

}  // namespace cermet::argmax
