// Timed runs: what every step took.
#include <chrono>
#include <utility>

#include "runtime/executable_state.hpp"

namespace cermet {

void Executable::State::note_time(std::size_t step, double start, double seconds) {
  timing.add(step, infos[step], memory.symbols, start, seconds);
}

Cost Executable::State::work_of(std::size_t step) {
  if (timing.costs.empty()) timing.note_costs(infos, memory.symbols);
  return timing.work_of(step, infos[step].region, memory.symbols);
}

Cost Executable::work(std::size_t step) { return state_->work_of(step); }

void Executable::State::launch_all_timed() {
  using Seconds = std::chrono::duration<double>;
  launch_in_order([&](const Launch& launch) {
    const auto start = std::chrono::steady_clock::now();
    execute(launch);
    const auto end = std::chrono::steady_clock::now();
    timing.keep_offsets(launch.step, steps.size(), infos[launch.step].region, operands_of(launch.step), nullptr);
    note_time(launch.step, Seconds(start - timing.started).count(), Seconds(end - start).count());
  });
}

/// Events between the steps give their times on a device; the host waits for the end.
void Executable::State::launch_all_marked() {
  std::vector<std::unique_ptr<DeviceEvent>>& marks = timing.marks;
  while (marks.size() < 2 * steps.size()) marks.push_back(stream->make_event());
  const std::span<const Launch> all = std::as_const(plan).launches();
  std::size_t next = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].empty) continue;
    stream->record(*marks[2 * i]);
    for (; next < all.size() && all[next].step == i; ++next) execute(all[next]);
    stream->record(*marks[2 * i + 1]);
    timing.keep_offsets(i, steps.size(), infos[i].region, operands_of(i), stream);
  }
  stream->synchronize();
  std::optional<std::size_t> first;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].empty) continue;
    if (!first) first = i;
    note_time(i, stream->seconds_between(*marks[2 * *first], *marks[2 * i]),
              stream->seconds_between(*marks[2 * i], *marks[2 * i + 1]));
  }
}

/// A run on a device that computes nothing.
void Executable::State::skip_all() {
  for (std::size_t i = 0; timing.on && i < steps.size(); ++i)
    if (!steps[i].empty) note_time(i, 0, 0);
  completed = true;
}

void Executable::set_timing(bool on) {
  state_->timing.on = on;
  if (on) state_->timing.launches.reserve(state_->steps.size());  // runs allocate nothing
}
std::span<const LaunchTime> Executable::last_launches() const { return state_->timing.launches; }
std::chrono::steady_clock::time_point Executable::last_start() const { return state_->timing.started; }

void Executable::reset_timers() {
  for (StepInfo& info : state_->infos) {
    info.runs = 0;
    info.seconds = 0;
    info.work = {};
  }
}

}  // namespace cermet
