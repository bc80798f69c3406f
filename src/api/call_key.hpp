// What of a call's inputs decides about its kernel: element types, dimensions, and which inputs are given.
#pragma once

#include <dlpack/dlpack.h>

#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace cermet::api {

/// Dimensions that may count rows: the leading ones of the first input, but for its last where it has several, and not
/// more than these.
inline constexpr std::size_t row_axes = 2;
template <class T>
using PerRowAxis = std::array<T, row_axes>;

/// The inputs of a call, read once. Refers to the tensors. Allocates nothing.
struct CallShape {
  std::span<const DLTensor* const> inputs;    ///< up to the last that is given
  PerRowAxis<std::int64_t> rows{-1, -1};      ///< sizes of the first input's row axes; -1 where it has none
  PerRowAxis<std::int64_t> range_ends{0, 0};  ///< of the ranges that these lie in: powers of two
  PerRowAxis<std::uint64_t> shared{0, 0};     ///< bit i: this axis of input i has the same size

  /// Throws Error naming the input whose form cannot be read, or that is one too many.
  CallShape(std::string_view op, std::span<const DLTensor* const> given);
  std::uint64_t hash() const;
};

/// Everything that a choice was made for. Calls whose row axes lie in its ranges match it.
class CallKey {
 public:
  /// `open`: bit i of an axis: the key stands for all sizes of the range there, else for this one. `but`: not for these
  /// sizes of the axes.
  CallKey(const CallShape& shape, const PerRowAxis<std::uint64_t>& open,
          std::vector<PerRowAxis<std::int64_t>> but = {});
  /// A comparison of all that the key has, not of hashes.
  bool matches(const CallShape& shape) const;
  std::uint64_t hash() const { return hash_; }

 private:
  static constexpr std::int64_t any_of_range = -1;
  struct Input {
    bool given = false;
    DLDataType type{};
    std::int32_t ndim = 0;
    std::array<std::int64_t, 8> dims{};
  };
  std::vector<Input> inputs_;
  PerRowAxis<std::int64_t> range_ends_;
  PerRowAxis<std::uint64_t> shared_;
  std::vector<PerRowAxis<std::int64_t>> but_;
  std::uint64_t hash_;
};

/// Values by the key of calls. Entries stay where they are.
template <class Value>
class CallTable {
 public:
  struct Entry {
    CallKey key;
    Value value;
  };
  /// Null where there is none. Allocates nothing.
  Entry* find(const CallShape& shape) {
    for (auto [at, end] = entries_.equal_range(shape.hash()); at != end; ++at)
      if (at->second.key.matches(shape)) return &at->second;
    return nullptr;
  }
  Entry& insert(CallKey key, Value value) {
    const std::uint64_t hash = key.hash();
    return entries_.emplace(hash, Entry{std::move(key), std::move(value)})->second;
  }
  /// Removes the entry with the least order(value).
  template <class Order>
  void erase_least(Order&& order) {
    auto least = entries_.begin();
    for (auto at = entries_.begin(); at != entries_.end(); ++at)
      if (order(at->second.value) < order(least->second.value)) least = at;
    if (least != entries_.end()) entries_.erase(least);
  }
  std::size_t size() const { return entries_.size(); }

 private:
  std::unordered_multimap<std::uint64_t, Entry> entries_;
};

}  // namespace cermet::api
