#include "model/paged_cache.hpp"

#include <algorithm>

#include "base/checked.hpp"
#include "base/error.hpp"

namespace cermet {

PagedCache::PagedCache(std::int64_t blocks, std::int64_t block_size, std::int64_t sequences,
                       std::int64_t pages_per_sequence)
    : block_size_(block_size),
      pages_per_sequence_(pages_per_sequence),
      sequences_(static_cast<std::size_t>(sequences)) {
  for (std::int64_t page = blocks; page-- > 0;) free_.push_back(static_cast<std::int32_t>(page));
  for (Sequence& sequence : sequences_) sequence.pages.reserve(static_cast<std::size_t>(pages_per_sequence));
}

std::int64_t PagedCache::room(int sequence) const {
  const Sequence& s = sequences_[static_cast<std::size_t>(sequence)];
  const std::int64_t held = static_cast<std::int64_t>(s.pages.size());
  const std::int64_t takeable = std::min(free_pages(), pages_per_sequence_ - held);
  return (held + takeable) * block_size_ - s.length;
}

void PagedCache::append(int sequence, std::int64_t tokens) {
  CERMET_ASSERT(tokens <= room(sequence));
  Sequence& s = sequences_[static_cast<std::size_t>(sequence)];
  s.length += tokens;
  while (static_cast<std::int64_t>(s.pages.size()) < div_up(s.length, block_size_)) {
    s.pages.push_back(free_.back());
    free_.pop_back();
  }
}

void PagedCache::reserve(int sequence) {
  Sequence& s = sequences_[static_cast<std::size_t>(sequence)];
  const auto held = static_cast<std::int64_t>(s.pages.size());
  if (held > s.length / block_size_ || held == pages_per_sequence_ || free_.empty()) return;
  s.pages.push_back(free_.back());
  free_.pop_back();
}

std::int32_t PagedCache::slot(int sequence, std::int64_t position) const {
  const Sequence& s = sequences_[static_cast<std::size_t>(sequence)];
  return static_cast<std::int32_t>(s.pages[static_cast<std::size_t>(position / block_size_)] * block_size_ +
                                   position % block_size_);
}

void PagedCache::drop(int sequence, std::int64_t tokens) {
  Sequence& s = sequences_[static_cast<std::size_t>(sequence)];
  CERMET_ASSERT(tokens <= s.length);
  s.length -= tokens;
  while (static_cast<std::int64_t>(s.pages.size()) > div_up(s.length, block_size_)) {
    free_.push_back(s.pages.back());
    s.pages.pop_back();
  }
}

void PagedCache::release(int sequence) { drop(sequence, length(sequence)); }

}  // namespace cermet
