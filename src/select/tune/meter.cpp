#include "select/tune/meter.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

#include "base/checked.hpp"
#include "base/pinned_threads.hpp"
#include "device/cpu/processor.hpp"
#include "device/device.hpp"
#include "device/replay_timer.hpp"
#include "select/tune/agreement.hpp"

namespace cermet {
namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

double quantile(const std::vector<double>& sorted, double part) {
  return sorted[static_cast<std::size_t>(part * static_cast<double>(sorted.size() - 1))];
}

Timing timing_of(std::vector<double> times) {
  std::ranges::sort(times);
  return {times[times.size() / 2], (quantile(times, 0.75) - quantile(times, 0.25)) / 2};
}

std::int64_t last_cache_bytes() {
  const std::int64_t bytes = std::max(processor().l3_bytes, processor().l2_bytes);
  return bytes > 0 ? bytes : std::int64_t{32} << 20;
}

/// Sets of operands that together exceed the last cache, so that none is there when it is used again; on a CPU up to as
/// much as is drawn in a moment.
std::int64_t sets_in_rotation(const DeviceQueue& queue, std::int64_t set_bytes) {
  constexpr std::int64_t most_host_bytes = std::int64_t{128} << 20;
  const std::int64_t most_sets =
      queue.device ? 1024
                   : 4096;  // as many as `bench op --cold` has: fewer of small operands stay in caches and page tables
  const std::int64_t wanted =
      queue.device ? 4 * queue.device->target()->l2_bytes : std::min(most_host_bytes, 2 * last_cache_bytes());
  return std::clamp<std::int64_t>(div_up(wanted, set_bytes) + 1, 1, most_sets);
}

/// How far apart in memory sets are that a CPU uses one after the other: neighbours it would have fetched ahead. All of
/// them have their turn.
std::int64_t step_between(std::int64_t sets) {
  std::int64_t step = std::max<std::int64_t>(1, sets * 5 / 8);
  while (std::gcd(step, sets) != 1) ++step;
  return step;
}

std::string layouts_of(const Region& region, const Kernel& kernel) {
  std::string names;
  for (std::size_t i = 0; i < region.operands.size(); ++i) {
    const WeightLayout* const layout =
        region.has(i) && region.is_constant(i) ? kernel.weight_layout(region, i) : nullptr;
    names += fmt::format("{};", layout ? layout->name : "");
  }
  return names;
}

}  // namespace

/// A choice that is bound, with operands in the layouts that it wants.
struct Meter::Ready {
  Choice choice;
  OperandSets& sets;
  BoundOp op;

  void run(std::int64_t set) { op.run(sets.inputs(set), sets.outputs(set)); }
};

/// Times launches one group after the other: a replay of a graph, or one launch on a CPU.
struct Meter::Timer {
  Ready& ready;
  std::unique_ptr<ReplayTimer> replay;
  std::int64_t next = 0, step;

  /// `first`: where in the rotation a CPU begins.
  Timer(Ready& what, const DeviceQueue& queue, std::int64_t first = 0)
      : ready(what), step(step_between(what.sets.count())) {
    next = first * step % what.sets.count();
    const std::int64_t sets = ready.sets.count();
    constexpr double graph_seconds = 0.001;
    const auto run = [&](std::int64_t set) { ready.run(set); };
    if (queue.device) replay = std::make_unique<ReplayTimer>(*queue.stream, sets, run, graph_seconds);
    else run(0);
  }
  double once() {
    if (replay) return replay->once();
    const auto begin = Clock::now();
    ready.run(next);
    const double seconds = since(begin);
    next = (next + step) % ready.sets.count();
    return seconds;
  }
};

Meter::Meter(const Region& region, const Region& sized, ThreadPool& pool, const DeviceQueue& queue,
             const MeterOptions& options)
    : region_(region), sized_(sized), pool_(pool), queue_(queue), options_(options) {}

Meter::~Meter() = default;

Meter::Ready& Meter::ready(const Choice& choice) {
  if (ready_ && ready_->choice == choice) return *ready_;
  ready_.reset();
  std::unique_ptr<OperandSets>& sets = sets_[layouts_of(sized_, *choice.kernel)];
  if (!sets) {
    sets = std::make_unique<OperandSets>(sized_, *choice.kernel, queue_, pool_, options_.values);
    constexpr std::int64_t most_drawn = std::int64_t{128} << 20;
    sets->make(sets_in_rotation(queue_, sets->set_bytes()), most_drawn);
  }
  ready_ = std::make_unique<Ready>(Ready{choice, *sets, BoundOp(region_, choice, pool_, queue_)});
  return *ready_;
}

std::vector<std::vector<double>> Meter::results_of(const Choice& choice) {
  Ready& ready = this->ready(choice);
  ready.sets.reset_first();
  ready.run(0);
  if (queue_.device) queue_.stream->synchronize();
  std::vector<std::vector<double>> values;
  for (const TensorView& result : ready.sets.outputs(0)) values.push_back(sampled_values(result, queue_));
  return values;
}

void Meter::expect(const Choice& choice) { expected_ = results_of(choice); }

std::string Meter::check(const Choice& choice) {
  const std::vector<std::vector<double>> found = results_of(choice);
  for (std::size_t o = 0; o < found.size(); ++o)
    if (std::string fault = disagreement(sized_, o, expected_[o], found[o]); !fault.empty()) return fault;
  return "";
}

Timing Meter::time(const Choice& choice, double hopeless) {
  constexpr std::size_t fewest = 5, fewest_before_giving_up = 2;
  Ready& ready = this->ready(choice);
  std::optional<PinnedThreads> pinned;
  if (!queue_.device) pinned.emplace(pool_);
  Timer timer(ready, queue_);
  std::vector<double> times;
  double least = 0;
  for (const auto begin = Clock::now(); since(begin) < options_.seconds || times.size() < fewest;) {
    options_.between();
    times.push_back(timer.once());
    least = times.size() == 1 ? times[0] : std::min(least, times.back());
    if (hopeless > 0 && times.size() >= fewest_before_giving_up && least > hopeless) {
      Timing timing = timing_of(times);
      timing.given_up = true;
      return timing;
    }
  }
  return timing_of(std::move(times));
}

PairedTiming Meter::compare(const Choice& first, const Choice& second, double seconds) {
  constexpr std::size_t fewest = 7, together = 3;
  ready(first);
  const std::unique_ptr<Ready> a = std::move(ready_);
  ready(second);
  const std::unique_ptr<Ready> b = std::move(ready_);
  std::optional<PinnedThreads> pinned;
  if (!queue_.device) pinned.emplace(pool_);
  Timer of_first(*a, queue_), of_second(*b, queue_, b->sets.count() / 2);  // not what the first has just fetched
  std::vector<double> times_a, times_b, ratios;
  const auto least_of = [&](Timer& timer) {
    double least = timer.once();
    for (std::size_t i = 1; i < together; ++i) least = std::min(least, timer.once());
    return least;
  };
  for (const auto begin = Clock::now(); since(begin) < seconds || ratios.size() < fewest;) {
    options_.between();
    // Which one is first takes turns, too, because what came before it is in the caches.
    const bool swapped = ratios.size() % 2 == 1;
    const double early = least_of(swapped ? of_second : of_first), late = least_of(swapped ? of_first : of_second);
    times_a.push_back(swapped ? late : early);
    times_b.push_back(swapped ? early : late);
    ratios.push_back(times_b.back() / times_a.back());
  }
  std::ranges::sort(ratios);
  const double half_quartiles = (quantile(ratios, 0.75) - quantile(ratios, 0.25)) / 2;
  // Of a normal distribution, half the distance of the quartiles is 0.67 deviations, and the median of n is off by 1.25
  // / sqrt(n) of them; twice that.
  const double noise = 2 * 1.25 * half_quartiles / 0.67 / std::sqrt(static_cast<double>(ratios.size()));
  return {timing_of(std::move(times_a)), timing_of(std::move(times_b)), ratios[ratios.size() / 2], noise};
}

}  // namespace cermet
