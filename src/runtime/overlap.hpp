// Which launches of a plan must follow which, by the bytes that they touch, and whether an order keeps to it: for
// schedules that overlap launches, and as a check of them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "device/plan.hpp"

namespace cermet {

/// Launch `before` ends before launch `after` starts; positions in the plan.
struct LaunchOrder {
  std::uint32_t before = 0, after = 0;
  friend bool operator==(const LaunchOrder&, const LaunchOrder&) = default;
};

/// Whether launch `after` must follow launch `before`, because one writes what the other touches.
bool must_follow(const Plan& plan, std::size_t before, std::size_t after);

/// What of a plan must stay in order, without what follows from the rest: a launch follows those before it that write
/// what it touches, or touch what it writes. Memory without an address (weights of a device that computes nothing) is
/// left out. Quadratic: for schedules, not for every run.
std::vector<LaunchOrder> dependencies_of(const Plan& plan);

/// Two launches that nothing in `order`, whose pairs follow the plan's order, keeps apart, though one writes what the
/// other touches; nothing where all are.
struct Overlap {
  std::uint32_t first = 0, second = 0;
  ByteRange written, touched;  ///< by the one and by the other
};
std::optional<Overlap> find_overlap(const Plan& plan, std::span<const LaunchOrder> order);

}  // namespace cermet
