// Memory that all ranks of a group share, in one process or several: who has arrived at which point, what each calls,
// who failed, and windows for data.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "comm/call.hpp"

namespace cermet::comm {

/// One rank's line of a board. Only its owner writes, but for `sleepers`.
struct alignas(128) Slot {
  std::atomic<std::uint32_t> arrived;   ///< points that the rank has reached, modulo 2^32
  std::atomic<std::uint32_t> sleepers;  ///< ranks that sleep until it arrives
  std::atomic<std::uint32_t> state;     ///< 0 not here yet, 1 here, 2 left
  std::int32_t process;
  CallHeader headers[2];  ///< of the present call and the one before, by the parity of their numbers
};

/// Zeros are an empty board. The same layout in all processes of a group, which are one program.
class Board {
 public:
  static std::int64_t bytes(int ranks, std::int64_t window_bytes);
  /// On memory of that size, 128-byte aligned; rank 0 calls it on zeros, before the others read.
  void initialize(int ranks, std::int64_t window_bytes);

  Slot& slot(int rank) {
    return *reinterpret_cast<Slot*>(memory() + header_bytes + static_cast<std::int64_t>(sizeof(Slot)) * rank);
  }
  /// Window `parity` of a rank. Windows of one parity lie window_stride() bytes apart, in the order of ranks.
  std::byte* window(int rank, int parity) {
    return memory() + windows_begin() + (parity * ranks_ + rank) * window_bytes_;
  }
  std::int64_t window_bytes() const { return window_bytes_; }
  int ranks() const { return ranks_; }

  /// Reaches the next point, and wakes those that sleep.
  void arrive(int rank);
  /// Wakes those that sleep until it arrives, so that they look at its state.
  void wake(int rank);
  /// Waits until `rank` has reached `point`, at most for about a twentieth of a second. Whether it has.
  bool wait_a_little(int rank, std::uint32_t point, int spins);
  static bool is_reached(std::uint32_t arrived, std::uint32_t point) {
    return static_cast<std::int32_t>(arrived - point) >= 0;
  }

  /// Records a failure in call `number` unless there is one; wakes all.
  void set_failure(int culprit, std::string_view reason, std::uint64_t number);
  /// Whether there was one in that call or before.
  bool has_failed(std::uint64_t number) const {
    return failure_state_.load(std::memory_order_acquire) == 2 && failure_number_ <= number;
  }
  /// Whether there is one, and which.
  bool failure(int& culprit, std::string& reason) const;

 private:
  static constexpr std::int64_t header_bytes = 1024;
  static constexpr std::size_t reason_bytes = 768;
  std::byte* memory() { return reinterpret_cast<std::byte*>(this); }
  std::int64_t windows_begin() const { return header_bytes + static_cast<std::int64_t>(sizeof(Slot)) * ranks_; }

  std::int32_t ranks_;
  std::int32_t failure_culprit_;
  std::int64_t window_bytes_;
  std::uint64_t failure_number_;
  std::atomic<std::uint32_t> failure_state_;  ///< 0 none, 1 being written, 2 there
  char failure_reason_[reason_bytes];
};

}  // namespace cermet::comm
