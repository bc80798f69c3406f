#include "base/pool_session.hpp"

#include <thread>
#include <utility>

#include "base/pool_point.hpp"

namespace cermet {
namespace {

/// What has become of a thread's part of a loop, in the low bits of its state.
constexpr std::uint64_t offered = 1, begun = 2, ended = 3, part_bits = 3;
constexpr int part_shift = 2;
/// In place of a number: the session is over.
constexpr std::uint64_t closed = ~std::uint64_t{0};

constexpr int spins_before_yield = 20000;

thread_local PoolSession* held = nullptr;     // by this thread
thread_local PoolSession* opening = nullptr;  // waits to learn which pool it is on

void pause_session() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

}  // namespace

PoolSession::PoolSession(int threads)
    : threads_(threads), slots_(std::make_unique<Slot[]>(static_cast<std::size_t>(threads))) {}

PoolSession* PoolSession::of(const ThreadPool& whole) {
  if (opening) std::exchange(opening, nullptr)->pool_ = &whole;
  return held && held->pool_ == &whole ? held : nullptr;
}

void PoolSession::hold(ThreadPool& pool, FunctionRef<void()> body) {
  if (held || pool.at_once() == 1 || pool.at_once() > threads_) return body();
  ThreadPool together(pool, pool.at_once());
  for (int thread = 1; thread < together.size(); ++thread)
    slots_[static_cast<std::size_t>(thread)].state.store(number_ << part_shift | ended);
  following_ = together.size();
  ahead_.store(nullptr, std::memory_order_relaxed);
  reader_ = AheadReader(0, following_);
  opening = this;
  together.run([&](int thread) {
    if (thread > 0) return follow(thread);
    struct Scope {
      PoolSession& session;
      explicit Scope(PoolSession& s) : session(s) { held = &s; }
      ~Scope() {
        held = nullptr;
        session.close();
      }
    } const now(*this);
    body();
  });
}

void PoolSession::close() {
  pool_ = nullptr;
  pool_point();
  for (int thread = 1; thread < threads_; ++thread)
    slots_[static_cast<std::size_t>(thread)].state.store(closed, std::memory_order_release);
}

/// A part of a loop, by whichever thread.
void PoolSession::call(int thread, int part, const FunctionRef<void(int)>& body) {
  using Clock = std::chrono::steady_clock;
  const auto begin = notes_ ? Clock::now() : Clock::time_point{};
  try {
    body(part);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::current_exception();
  }
  if (notes_) slots_[static_cast<std::size_t>(thread)].notes.push_back({tag_, thread, begin, Clock::now()});
}

void PoolSession::start_notes() {
  take_notes();
  notes_ = true;
}

std::vector<PartTime> PoolSession::take_notes() {
  notes_ = false;
  std::vector<PartTime> all;
  for (int thread = 0; thread < threads_; ++thread) {
    std::vector<PartTime>& own = slots_[static_cast<std::size_t>(thread)].notes;
    all.insert(all.end(), own.begin(), own.end());
    own.clear();
  }
  return all;
}

void PoolSession::follow(int thread) {
  Slot& slot = slots_[static_cast<std::size_t>(thread)];
  AheadReader reader(thread, following_);
  for (int spins = 0;; ++spins) {
    std::uint64_t state = slot.state.load(std::memory_order_acquire);
    pool_point();
    if (state == closed) return;
    if ((state & part_bits) == offered &&
        slot.state.compare_exchange_strong(state, (state & ~part_bits) | begun, std::memory_order_acquire)) {
      pool_point();
      call(thread, thread, *slot.body);
      pool_point();
      slot.state.store((state & ~part_bits) | ended, std::memory_order_release);
      reader.pass();
      spins = 0;
    } else if (reader.follow(ahead_.load(std::memory_order_acquire)); reader.step()) {
      spins = 0;
    } else if (spins < spins_before_yield) {
      pause_session();
    } else {
      std::this_thread::yield();
    }
  }
}

void PoolSession::run(int threads, FunctionRef<void(int)> body) {
  if (threads == 1) return body(0);
  const std::uint64_t number = ++number_;
  ++loops_;
  error_ = nullptr;
  for (int thread = 1; thread < threads; ++thread) {
    Slot& slot = slots_[static_cast<std::size_t>(thread)];
    slot.body = &body;
    pool_point();
    slot.state.store(number << part_shift | offered, std::memory_order_release);
  }
  call(0, 0, body);
  reader_.follow(ahead_.load(std::memory_order_relaxed));
  reader_.pass();
  for (int thread = 1; thread < threads; ++thread) finish(thread, number);
  if (error_) std::rethrow_exception(error_);
}

/// Waits for a thread's part, or does it where the thread has not begun.
void PoolSession::finish(int thread, std::uint64_t number) {
  Slot& slot = slots_[static_cast<std::size_t>(thread)];
  const int patience = slot.is_absent ? 0 : spins_before_claim;
  for (int spins = 0;; ++spins) {
    std::uint64_t state = slot.state.load(std::memory_order_acquire);
    pool_point();
    if (state == (number << part_shift | ended)) {
      slot.is_absent = false;
      return;
    }
    if (spins >= patience && state == (number << part_shift | offered) &&
        slot.state.compare_exchange_strong(state, number << part_shift | begun)) {
      call(0, thread, *slot.body);
      pool_point();
      slot.state.store(number << part_shift | ended, std::memory_order_relaxed);
      slot.is_absent = true;
      return;
    }
    if (spins < patience && reader_.step()) continue;
    if (spins < spins_before_yield) pause_session();
    else std::this_thread::yield();  // it has begun and lost its core
  }
}

}  // namespace cermet
