// Random plans of launches over a little memory, with all that a schedule has to get right: chains, diamonds, several
// streams, empty tensors, mixed widths, items that wait for each other, memory that is used again. What items touch is
// known byte by byte, apart from what the plan says of it.
#pragma once

#include <array>
#include <random>
#include <vector>

#include "device/plan.hpp"

namespace cermet::super_kernel_test {

/// Bytes of each item of a launch, by offset in the memory.
struct ItemBytes {
  std::vector<std::uint32_t> reads, writes;
};

struct RandomPlan {
  static constexpr std::int64_t memory_bytes = 1024;
  alignas(64) std::array<std::byte, memory_bytes> memory{};  ///< only its addresses matter
  Plan plan;
  std::vector<std::vector<ItemBytes>> items;  ///< by launch

  explicit RandomPlan(std::uint64_t seed) : random_(seed) {
    plan.want_ranges(true);
    const int launches = between(1, 14);
    for (int l = 0; l < launches; ++l) {
      plan.begin_step(static_cast<std::size_t>(l));
      add();
    }
  }
  RandomPlan(const RandomPlan&) = delete;
  RandomPlan& operator=(const RandomPlan&) = delete;

 private:
  int between(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); }
  bool chance(int percent) { return between(1, 100) <= percent; }

  /// A piece of memory of the size that `items` tiles of a launch have; few places, so that launches meet.
  struct Piece {
    std::int64_t at = 0, bytes = 0, items_each = 1, bytes_each = 0;
    bool has_box = false;
  };
  Piece piece(int items) {
    Piece p;
    p.items_each = chance(25) ? between(1, items) : 1;
    const std::int64_t tiles = (items + p.items_each - 1) / p.items_each;
    p.bytes_each = between(1, static_cast<int>(std::max<std::int64_t>(1, 128 / tiles)));
    p.bytes = chance(5) ? 0 : tiles * p.bytes_each;
    p.at = 128 * between(0, 6) + (chance(20) ? between(0, 32) : 0);
    p.has_box = chance(80);
    return p;
  }
  ByteRange range(const Piece& p) const {
    return {memory.data() + p.at, p.bytes, p.has_box ? tiles_of_items(p.items_each, p.bytes_each, p.bytes) : ItemBox{}};
  }
  static bool meet(const Piece& a, const Piece& b) { return a.at < b.at + b.bytes && b.at < a.at + a.bytes; }

  void add() {
    const int count = chance(15) ? 1 : between(1, 24);
    const Piece written = piece(count);
    std::vector<Piece> read;
    for (int r = between(0, 3); r > 0; --r) {
      const Piece p = piece(count);
      if (!meet(p, written)) read.push_back(p);  // items of one launch must not depend on each other
    }
    if (chance(20) && written.has_box && written.items_each == 1) read.push_back(written);  // updated in place
    Launch launch;
    launch.items = static_cast<std::uint32_t>(count);
    if (chance(8) && count <= 6) launch.barriers = static_cast<std::uint32_t>(between(1, 3));
    plan.add_program(launch, {});
    std::vector<ByteRange> reads;
    for (const Piece& p : read) reads.push_back(range(p));
    const ByteRange writes = range(written);
    plan.declare(reads, {&writes, 1});
    note_items(count, read, written);
  }

  /// Where there is no box, who writes a byte is left to chance, and everyone reads some.
  void note_items(int count, const std::vector<Piece>& read, const Piece& written) {
    std::vector<ItemBytes> list(static_cast<std::size_t>(count));
    const auto own = [&](const Piece& p, int item, std::int64_t byte) {
      return p.has_box ? byte / p.bytes_each == item / p.items_each : chance(30);
    };
    for (int item = 0; item < count; ++item)
      for (const Piece& p : read)
        for (std::int64_t byte = 0; byte < p.bytes; ++byte)
          if (own(p, item, byte))
            list[static_cast<std::size_t>(item)].reads.push_back(static_cast<std::uint32_t>(p.at + byte));
    for (std::int64_t byte = 0; byte < written.bytes; ++byte) {
      std::int64_t item = between(0, count - 1);
      if (written.has_box) {
        const std::int64_t first = byte / written.bytes_each * written.items_each;
        item = std::min<std::int64_t>(first + between(0, static_cast<int>(written.items_each) - 1), count - 1);
      }
      list[static_cast<std::size_t>(item)].writes.push_back(static_cast<std::uint32_t>(written.at + byte));
    }
    items.push_back(std::move(list));
  }

  std::mt19937_64 random_;
};

/// Follows who wrote each byte last. In any order that keeps to the dependencies, items read what they read when
/// launches go one by one.
class Versions {
 public:
  explicit Versions(const RandomPlan& plan) : plan_(plan), last_(RandomPlan::memory_bytes) {
    for (std::uint32_t l = 0; l < plan.items.size(); ++l) {
      read_.emplace_back();
      for (std::uint32_t item = 0; item < plan.items[l].size(); ++item) read_.back().push_back(seen(l, item));
      for (std::uint32_t item = 0; item < plan.items[l].size(); ++item) write(l, item);
    }
    end_ = last_;
    last_.assign(last_.size(), 0);
  }

  void begins(std::uint32_t launch, std::uint32_t item) { good_ = good_ && seen(launch, item) == read_[launch][item]; }
  /// What it read must have stood until now.
  void ends(std::uint32_t launch, std::uint32_t item) {
    begins(launch, item);
    write(launch, item);
  }
  bool all_right() const { return good_ && last_ == end_; }

 private:
  std::vector<std::uint32_t> seen(std::uint32_t launch, std::uint32_t item) const {
    std::vector<std::uint32_t> list;
    for (const std::uint32_t byte : plan_.items[launch][item].reads) list.push_back(last_[byte]);
    return list;
  }
  void write(std::uint32_t launch, std::uint32_t item) {
    for (const std::uint32_t byte : plan_.items[launch][item].writes) last_[byte] = launch * 1000 + item + 1;
  }

  const RandomPlan& plan_;
  std::vector<std::vector<std::vector<std::uint32_t>>> read_;  ///< by launch and item, one by one
  std::vector<std::uint32_t> last_, end_;                      ///< by byte: who wrote it
  bool good_ = true;
};

}  // namespace cermet::super_kernel_test
