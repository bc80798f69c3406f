// What threads that wait for their part of a loop ask their caches for.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace cermet {

/// Bytes that a loop reads, each thread an equal part in order, and those that are read after them. An element without
/// bytes stands for loops that read none.
struct ReadAhead {
  const std::byte* begin = nullptr;
  std::int64_t bytes = 0;
  const ReadAhead* next = nullptr;
};

/// One thread's place in a list of these.
class AheadReader {
 public:
  static constexpr std::int64_t most_bytes =
      256 << 10;  ///< of a thread's part: an eighth of a second-level cache at least stays for other things

  AheadReader(int thread, int threads) : thread_(thread), threads_(threads) {}

  /// What is read from here on; the thread goes on where it was if that comes next.
  void follow(const ReadAhead* first) {
    if (first == first_) return;
    first_ = first;
    enter(first && !first->begin ? first->next : first);
  }
  /// The thread has done its part of a loop: the bytes of the present one need no asking any more.
  void pass() {
    if (first_ && at_ == first_) enter(first_->next);
  }
  /// Asks for a few lines; false where nothing is left to ask for.
  bool step() {
    if (from_ == to_) return false;
    const char* const end = from_ + std::min<std::int64_t>(to_ - from_, 4 * line);
    for (; from_ < end; from_ += line) __builtin_prefetch(from_, 0, 2);
    from_ = end;
    return true;
  }

 private:
  static constexpr std::int64_t line = 64;
  void enter(const ReadAhead* at) {
    if (at == at_) return;
    at_ = at;
    from_ = to_ = nullptr;
    if (!at || !at->begin) return;
    const auto* const begin = reinterpret_cast<const char*>(at->begin);
    from_ = begin + at->bytes * thread_ / threads_;
    to_ = from_ + std::min(begin + at->bytes * (thread_ + 1) / threads_ - from_, most_bytes);
  }

  int thread_, threads_;
  const ReadAhead *first_ = nullptr, *at_ = nullptr;
  const char *from_ = nullptr, *to_ = nullptr;
};

}  // namespace cermet
