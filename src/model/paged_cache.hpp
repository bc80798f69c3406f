// Bookkeeping of a paged KV cache: which pages hold which sequence's tokens. The memory itself belongs to the engine.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace cermet {

class PagedCache {
 public:
  /// `blocks` pages of `block_size` tokens, shared by `sequences` sequences of at most `pages_per_sequence` pages each.
  PagedCache(std::int64_t blocks, std::int64_t block_size, std::int64_t sequences, std::int64_t pages_per_sequence);

  std::int64_t length(int sequence) const { return sequences_[static_cast<std::size_t>(sequence)].length; }
  /// Tokens that a sequence can still take: what its last page, the free pages and its table leave.
  std::int64_t room(int sequence) const;
  /// Appends tokens to a sequence, taking pages as needed; `tokens` must not exceed room().
  void append(int sequence, std::int64_t tokens);
  /// Takes the page of the token after the last one, if it is free and the table has room. drop() of 0 tokens gives it
  /// back.
  void reserve(int sequence);
  /// Whether that page is held.
  bool holds_next(int sequence) const { return std::ssize(pages(sequence)) > length(sequence) / block_size_; }
  /// Cache slot (page * block_size + offset) of a position below length().
  std::int32_t slot(int sequence, std::int64_t position) const;
  /// Pages of a sequence in order of position.
  std::span<const std::int32_t> pages(int sequence) const {
    return sequences_[static_cast<std::size_t>(sequence)].pages;
  }
  /// Forgets a sequence's last tokens and gives back the pages that held only them. `tokens` must not exceed length().
  void drop(int sequence, std::int64_t tokens);
  /// Gives a sequence's pages back.
  void release(int sequence);
  std::int64_t free_pages() const { return static_cast<std::int64_t>(free_.size()); }

 private:
  struct Sequence {
    std::vector<std::int32_t> pages;
    std::int64_t length = 0;
  };
  std::int64_t block_size_, pages_per_sequence_;
  std::vector<std::int32_t> free_;  ///< lowest page last, so that it is taken first
  std::vector<Sequence> sequences_;
};

}  // namespace cermet
