// A seeded sample of a stream of rows whose length is not known in advance.
#pragma once

#include <cstdint>
#include <vector>

namespace cermet {

/// Keeps those of the rows offered whose ordinals hash lowest: the same ones for the same seed, whatever the calls
/// were.
class RowSample {
 public:
  RowSample() = default;
  RowSample(std::int64_t columns, std::int64_t capacity, std::uint64_t seed)
      : columns_(columns), capacity_(capacity), seed_(seed) {}

  /// `count` more rows of float32 [count, columns].
  void offer(const float* rows, std::int64_t count);
  std::int64_t offered() const { return offered_; }
  std::int64_t size() const { return static_cast<std::int64_t>(kept_.size()); }
  /// Copies the rows kept, in the order in which they came, to `destination` [size(), columns].
  void copy_to(float* destination) const;

 private:
  struct Kept {
    std::uint64_t priority;  ///< lower wins
    std::int64_t ordinal, slot;
  };
  std::int64_t columns_ = 0, capacity_ = 0, offered_ = 0;
  std::uint64_t seed_ = 0;
  std::vector<Kept> kept_;  ///< a heap, the highest priority number first
  std::vector<float> rows_;
};

}  // namespace cermet
