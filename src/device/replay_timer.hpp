// How long launches take as deployed: captured once, replayed many times. Timing an event costs microseconds, so a
// graph repeats short launches until it takes long, and a replay before the timed one keeps the device busy until that
// starts.
#pragma once

#include <cstdint>
#include <memory>

#include "base/function_ref.hpp"
#include "device/stream.hpp"

namespace cermet {

struct ReplayTimes {
  double median_seconds = 0, min_seconds = 0;  ///< of one launch
  std::int64_t launches = 0;                   ///< of one graph
  std::int64_t graphs = 0;                     ///< replays that were timed
};

struct ReplayOptions {
  double seconds = 0.1;          ///< to spend on timed replays
  std::int64_t fewest = 5;       ///< timed replays, however long they take
  double graph_seconds = 0.002;  ///< what one graph should take at least
  /// Called between replays; may throw.
  void (*between)() = [] {};
};

/// One graph of launches, to be timed again and again: to compare two of them in turn.
class ReplayTimer {
 public:
  /// Captures `enqueue(i)`, which puts one launch with the i-th of `sets` sets of operands on the stream; a graph uses
  /// each set equally often. Everything runs once before. An error in between leaves the stream usable.
  ReplayTimer(Stream& stream, std::int64_t sets, FunctionRef<void(std::int64_t)> enqueue,
              double graph_seconds = ReplayOptions{}.graph_seconds);
  /// Seconds of a launch in one replay.
  double once();
  /// The same of the first replay, of a graph that may have been shorter.
  double first() const { return first_; }
  std::int64_t launches() const { return launches_; }

 private:
  Stream& stream_;
  std::unique_ptr<CapturedGraph> graph_;
  std::unique_ptr<DeviceEvent> start_, end_;
  std::int64_t launches_;
  double first_;
};

/// Times `enqueue(i)`, which puts one launch with the i-th of `sets` sets of operands on the stream; every graph uses
/// each set equally often. Everything runs once before it is captured. An error in between leaves the stream usable.
ReplayTimes time_replays(Stream& stream, std::int64_t sets, FunctionRef<void(std::int64_t)> enqueue,
                         const ReplayOptions& options = {});

}  // namespace cermet
