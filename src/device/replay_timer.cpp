#include "device/replay_timer.hpp"

#include <algorithm>
#include <chrono>
#include <vector>

#include "base/checked.hpp"

namespace cermet {
namespace {

constexpr std::int64_t most_launches =
    4096;  // of a graph, unless there are more sets: making one takes a microsecond or two for each

std::unique_ptr<CapturedGraph> capture(Stream& stream, std::int64_t launches, std::int64_t sets,
                                       FunctionRef<void(std::int64_t)> enqueue) {
  stream.begin_capture();
  try {
    for (std::int64_t i = 0; i < launches; ++i) enqueue(i % sets);
    return stream.end_capture();
  } catch (...) {
    stream.abandon_capture();
    throw;
  }
}

/// Seconds of one replay.
double time_once(Stream& stream, const CapturedGraph& graph, DeviceEvent& start, DeviceEvent& end) {
  stream.replay(graph);
  stream.record(start);
  stream.replay(graph);
  stream.record(end);
  stream.synchronize();
  return stream.seconds_between(start, end);
}

}  // namespace

ReplayTimer::ReplayTimer(Stream& stream, std::int64_t sets, FunctionRef<void(std::int64_t)> enqueue,
                         double graph_seconds)
    : stream_(stream), launches_(sets), first_(0) {
  for (std::int64_t i = 0; i < sets; ++i) enqueue(i);
  stream.synchronize();
  graph_ = capture(stream, sets, sets, enqueue);
  start_ = stream.make_event(), end_ = stream.make_event();
  const double one = time_once(stream, *graph_, *start_, *end_);
  first_ = one / static_cast<double>(sets);
  if (one < graph_seconds && sets < most_launches) {
    const double rounds = graph_seconds / std::max(one, 1e-6);
    launches_ = sets * std::clamp<std::int64_t>(static_cast<std::int64_t>(rounds) + 1, 1,
                                                std::max<std::int64_t>(1, most_launches / sets));
    if (launches_ > sets) graph_ = capture(stream, launches_, sets, enqueue);
  }
  time_once(stream, *graph_, *start_, *end_);
}

double ReplayTimer::once() { return time_once(stream_, *graph_, *start_, *end_) / static_cast<double>(launches_); }

ReplayTimes time_replays(Stream& stream, std::int64_t sets, FunctionRef<void(std::int64_t)> enqueue,
                         const ReplayOptions& options) {
  ReplayTimer timer(stream, sets, enqueue, options.graph_seconds);
  ReplayTimes result;
  result.launches = timer.launches();
  std::vector<double> times;
  const auto begin = std::chrono::steady_clock::now();
  const auto spent = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
  while (static_cast<std::int64_t>(times.size()) < options.fewest || spent() < options.seconds) {
    options.between();
    times.push_back(timer.once());
  }
  std::sort(times.begin(), times.end());
  result.graphs = static_cast<std::int64_t>(times.size());
  result.median_seconds = times[times.size() / 2];
  result.min_seconds = times.front();
  return result;
}

}  // namespace cermet
