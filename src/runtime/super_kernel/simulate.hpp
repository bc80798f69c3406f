// Runs a schedule without its work: thread blocks that go on in any order, each held up at random, to find what waits
// for ever or too little.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "runtime/super_kernel/schedule.hpp"

namespace cermet {

struct SuperSimulation {
  std::uint32_t blocks = 1;  ///< that run at once
  std::uint64_t seed = 0;    ///< of the order in which they go on
  bool dealt = false;        ///< chunk i is block i % blocks'; otherwise each block takes the next one when it is free
  std::function<void(std::uint32_t task, std::uint32_t item)> begins =
      {};  ///< when an item starts to read; not for idle items
  std::function<void(std::uint32_t task, std::uint32_t item)> ends =
      {};  ///< when it has written, before it raises its counter
};

/// What goes wrong: "task 3 item 5 waits for counter 7: expected 4, found 3", of the first block that is stuck; nothing
/// where every item ends.
std::optional<std::string> simulate(const SuperSchedule& schedule, const SuperSimulation& simulation);

}  // namespace cermet
