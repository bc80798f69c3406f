#include "comm/board.hpp"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <ctime>

namespace cermet::comm {
namespace {

static_assert(std::atomic<std::uint32_t>::is_always_lock_free && sizeof(std::atomic<std::uint32_t>) == 4);

/// Of all processes that map the word, so without FUTEX_PRIVATE_FLAG.
long futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value, const timespec* timeout) {
  return syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), operation, value, timeout, nullptr, 0);
}

void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

std::int64_t Board::bytes(int ranks, std::int64_t window_bytes) {
  static_assert(sizeof(Board) <= header_bytes && sizeof(Slot) % 128 == 0);
  return header_bytes + ranks * (static_cast<std::int64_t>(sizeof(Slot)) + 2 * window_bytes);
}

void Board::initialize(int ranks, std::int64_t window_bytes) {
  ranks_ = ranks;
  window_bytes_ = window_bytes;
}

void Board::arrive(int rank) {
  Slot& own = slot(rank);
  own.arrived.fetch_add(1, std::memory_order_seq_cst);
  if (own.sleepers.load(std::memory_order_seq_cst) > 0) futex(own.arrived, FUTEX_WAKE, INT_MAX, nullptr);
}

void Board::wake(int rank) { futex(slot(rank).arrived, FUTEX_WAKE, INT_MAX, nullptr); }

bool Board::wait_a_little(int rank, std::uint32_t point, int spins) {
  Slot& other = slot(rank);
  const auto reached = [&](std::uint32_t arrived) { return is_reached(arrived, point); };
  for (int i = 0; i < spins; ++i) {
    if (reached(other.arrived.load(std::memory_order_acquire))) return true;
    pause_briefly();
  }
  for (int i = 0; i < 4; ++i) {
    if (reached(other.arrived.load(std::memory_order_acquire))) return true;
    sched_yield();
  }
  other.sleepers.fetch_add(1, std::memory_order_seq_cst);
  const std::uint32_t seen = other.arrived.load(std::memory_order_seq_cst);
  if (!reached(seen) && failure_state_.load(std::memory_order_acquire) != 2) {
    const timespec patience{0, 50'000'000};
    futex(other.arrived, FUTEX_WAIT, seen, &patience);
  }
  other.sleepers.fetch_sub(1, std::memory_order_seq_cst);
  return reached(other.arrived.load(std::memory_order_acquire));
}

void Board::set_failure(int culprit, std::string_view reason, std::uint64_t number) {
  std::uint32_t none = 0;
  if (!failure_state_.compare_exchange_strong(none, 1)) return;
  failure_culprit_ = culprit;
  failure_number_ = number;
  const std::size_t length = std::min(reason.size(), reason_bytes - 1);
  std::copy_n(reason.data(), length, failure_reason_);
  failure_reason_[length] = '\0';
  failure_state_.store(2, std::memory_order_release);
  for (int r = 0; r < ranks_; ++r) wake(r);
}

bool Board::failure(int& culprit, std::string& reason) const {
  if (failure_state_.load(std::memory_order_acquire) != 2) return false;
  culprit = failure_culprit_;
  reason = failure_reason_;
  return true;
}

}  // namespace cermet::comm
