// Bytes that the items of a launch say they touch, one by one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "device/plan.hpp"

namespace cermet {

/// The bytes of one tensor: which of them are marked.
class ByteMap {
 public:
  explicit ByteMap(const ByteRange& whole) : whole_(whole), marks_(static_cast<std::size_t>(whole.bytes)) {}

  /// What an item touches of those.
  void mark(const ByteRange& range, std::int64_t item) {
    if (range.begin == nullptr || !range.overlaps(whole_)) return;
    const auto add = [&](std::int64_t first, std::int64_t end) {
      first = std::max<std::int64_t>(0, first + (range.begin - whole_.begin)),
      end = std::min(whole_.bytes, end + (range.begin - whole_.begin));
      if (first < end) std::memset(marks_.data() + first, 1, static_cast<std::size_t>(end - first));
    };
    if (range.box.is_given())
      for_each_run(range.box, item,
                   [&](std::int64_t first, std::int64_t end) { add(first, std::min(end, range.bytes)); });
    else add(0, range.bytes);
  }
  void mark(std::span<const ByteRange> ranges, std::int64_t item) {
    for (const ByteRange& range : ranges) mark(range, item);
  }
  bool has(std::int64_t first, std::int64_t count) const { return !finds(0, first, count); }
  bool has_some(std::int64_t first, std::int64_t count) const { return finds(1, first, count); }
  bool meets(const ByteMap& other) const {
    std::size_t i = 0;
    for (; i + sizeof(std::uint64_t) <= marks_.size(); i += sizeof(std::uint64_t))
      if ((word_at(i) & other.word_at(i)) != 0) return true;
    for (; i < marks_.size(); ++i)
      if ((marks_[i] & other.marks_[i]) != 0) return true;
    return false;
  }
  friend bool operator==(const ByteMap& a, const ByteMap& b) { return a.marks_ == b.marks_; }

 private:
  bool finds(unsigned char mark, std::int64_t first, std::int64_t count) const {
    return count > 0 && std::memchr(marks_.data() + first, mark, static_cast<std::size_t>(count)) != nullptr;
  }
  std::uint64_t word_at(std::size_t i) const {
    std::uint64_t word;
    std::memcpy(&word, marks_.data() + i, sizeof(word));
    return word;
  }

  ByteRange whole_;
  std::vector<unsigned char> marks_;  ///< 1 where a byte is marked: searched many at a time
};

/// Whether some range of a launch says what its items have.
inline bool shares_out(std::span<const ByteRange> ranges) {
  return std::ranges::any_of(ranges, [](const ByteRange& range) { return range.box.is_given(); });
}

}  // namespace cermet
