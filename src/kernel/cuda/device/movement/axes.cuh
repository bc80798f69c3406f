// Offsets of a position in axes.
#pragma once

#include "kernel/cuda/device/movement/axes.hpp"
#include "kernel/cuda/device/types.cuh"

namespace cermet {

CERMET_DEVICE uint32_t quotient(uint32_t n, const Divisor& d) { return (__umulhi(n, d.multiplier) + n) >> d.shift; }

/// Calls body(axis, coordinate) from the innermost axis to the outermost.
template <int N, class Body>
CERMET_DEVICE void for_coordinates(const Axes<N>& axes, int64_t position, Body&& body) {
  if (axes.wide) {
#pragma unroll 1
    for (int a = axes.rank - 1; a > 0; --a) {
      const int64_t next = position / axes.size[a];
      body(a, position - next * axes.size[a]);
      position = next;
    }
    body(0, position);
  } else {
    uint32_t remaining = static_cast<uint32_t>(position);
#pragma unroll 1
    for (int a = axes.rank - 1; a > 0; --a) {
      const uint32_t next = quotient(remaining, axes.by[a]);
      body(a, static_cast<int64_t>(remaining - next * axes.by[a].divisor));
      remaining = next;
    }
    body(0, static_cast<int64_t>(remaining));
  }
}

/// Offset of every operand at a position, 0 <= position < count.
template <int N>
CERMET_DEVICE void offsets_at(const Axes<N>& axes, int64_t position, int64_t (&offset)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) offset[i] = 0;
  for_coordinates(axes, position, [&](int a, int64_t at) {
#pragma unroll
    for (int i = 0; i < N; ++i) offset[i] += at * axes.stride[i][a];
  });
}

/// Words of 1 to 16 bytes that a copy moves.
struct alignas(16) Word16 {
  uint32_t part[4];
};

/// Calls body with a zero word of 1, 2, 4, 8 or 16 bytes: one program serves all sizes, and every thread takes the same
/// branch.
template <class Body>
CERMET_DEVICE void by_word_size(uint32_t bytes, Body&& body) {
  switch (bytes) {
    case 1: return body(uint8_t{});
    case 2: return body(uint16_t{});
    case 4: return body(uint32_t{});
    case 8: return body(uint64_t{});
    default: return body(Word16{});
  }
}

/// A word whose bits are all set: NaN of every floating type, -1 of every integer. What an index out of range gives.
template <class Word>
CERMET_DEVICE Word no_word() {
  if constexpr (sizeof(Word) == 16) return Word{{~0u, ~0u, ~0u, ~0u}};
  else return static_cast<Word>(~static_cast<Word>(0));
}

/// Words of an item of `threads` times up to four positions: what load(offsets) gives for each, stored at the last
/// operand's offset. A thread's loads are all issued before its stores.
template <class Word, int threads, int N, class Team, class Load>
CERMET_DEVICE void move_words(Team team, const Axes<N>& axes, int per_thread, uint32_t item, Word* to, Load&& load) {
  constexpr int most = 4;
  const int64_t first = static_cast<int64_t>(item) * (threads * per_thread) + team.rank();
  Word word[most];
  int64_t target[most];
#pragma unroll
  for (int i = 0; i < most; ++i) {
    const int64_t position = first + i * threads;
    target[i] = -1;
    if (i >= per_thread || position >= axes.count) continue;
    int64_t offset[N];
    offsets_at(axes, position, offset);
    word[i] = load(offset);
    target[i] = offset[N - 1];
  }
#pragma unroll
  for (int i = 0; i < most; ++i)
    if (i < per_thread && first + i * threads < axes.count) to[target[i]] = word[i];
}

/// Element of an index operand, int32 or int64.
CERMET_DEVICE int64_t load_index(const void* data, bool wide, int64_t at) {
  return wide ? static_cast<const int64_t*>(data)[at] : static_cast<const int32_t*>(data)[at];
}

}  // namespace cermet
