// Timed runs: what every step took, and what work it did.
#include <chrono>
#include <cstring>
#include <utility>

#include "op/grouped_work.hpp"
#include "runtime/executable_state.hpp"

namespace cermet {
namespace {

/// Operations and bytes of a region with these symbols.
Cost cost_at(Region region, const SymbolValues& symbols) {
  region.set_maximum(symbols);
  return cost_of(region);
}

}  // namespace

void Executable::State::note_costs() {
  for (const StepInfo& info : infos) costs.push_back(cost_at(info.region, symbols));
}

/// Of a grouped product, notes which groups have rows: memory may be reused by the next step. On a device the copy is enqueued.
void Executable::State::keep_offsets(std::size_t i) {
  constexpr std::size_t group_offsets = 2;
  if (infos[i].region.problem().op->kind != OpKind::grouped_linear) return;
  const std::optional<std::size_t> operand = infos[i].region.operand_of(group_offsets);
  if (!operand) return;
  const TensorView& source = operands[steps[i].first + *operand];
  offsets.resize(steps.size());
  if (offsets[i].memory.size() != dense_bytes(source.dtype, source.shape)) offsets[i] = OwnedTensor(source.dtype, source.shape);
  const auto bytes = dense_bytes(source.dtype, source.shape);
  if (stream) stream->download(offsets[i].view.data, source.data, bytes);
  else std::memcpy(offsets[i].view.data, source.data, static_cast<std::size_t>(bytes));
}

/// The cost of a step that has run: only the weights of groups with rows were read.
Cost Executable::State::work_of(std::size_t i) const {
  Cost cost = costs[i];
  if (!computes || i >= offsets.size() || offsets[i].memory.size() == 0) return cost;
  Problem problem = infos[i].region.problem();
  problem.maximum = symbols;
  const GroupedWork work = grouped_work(problem);
  cost.bytes += work.bytes_per_group * static_cast<double>(used_groups(offsets[i].view, problem.size(1, 0)) - work.groups);
  return cost;
}

Cost Executable::work(std::size_t step) {
  if (state_->costs.empty()) state_->note_costs();
  return state_->work_of(step);
}

void Executable::State::add_work(std::size_t i, double start, double seconds) {
  const Cost work = work_of(i);
  launches.push_back({i, start, seconds, work});
  infos[i].seconds += seconds;
  infos[i].work.operations += work.operations;
  infos[i].work.bytes += work.bytes;
  ++infos[i].runs;
}

void Executable::State::launch_all_timed() {
  using Seconds = std::chrono::duration<double>;
  launch_in_order([&](const Launch& launch) {
    const auto start = std::chrono::steady_clock::now();
    execute(launch);
    const auto end = std::chrono::steady_clock::now();
    keep_offsets(launch.step);
    add_work(launch.step, Seconds(start - started).count(), Seconds(end - start).count());
  });
}

/// Events between the steps give their times on a device; the host waits for the end.
void Executable::State::launch_all_marked() {
  while (marks.size() < 2 * steps.size()) marks.push_back(stream->make_event());
  const std::span<const Launch> all = std::as_const(plan).launches();
  std::size_t next = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].empty) continue;
    stream->record(*marks[2 * i]);
    for (; next < all.size() && all[next].step == i; ++next) execute(all[next]);
    stream->record(*marks[2 * i + 1]);
    keep_offsets(i);
  }
  stream->synchronize();
  std::optional<std::size_t> first;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].empty) continue;
    if (!first) first = i;
    add_work(i, stream->seconds_between(*marks[2 * *first], *marks[2 * i]), stream->seconds_between(*marks[2 * i], *marks[2 * i + 1]));
  }
}

/// A run on a device that computes nothing.
void Executable::State::skip_all() {
  for (std::size_t i = 0; timing && i < steps.size(); ++i)
    if (!steps[i].empty) add_work(i, 0, 0);
  completed = true;
}

void Executable::set_timing(bool on) {
  state_->timing = on;
  if (on) state_->launches.reserve(state_->steps.size());  // runs allocate nothing
}
std::span<const LaunchTime> Executable::last_launches() const { return state_->launches; }
std::chrono::steady_clock::time_point Executable::last_start() const { return state_->started; }

void Executable::reset_timers() {
  for (StepInfo& info : state_->infos) {
    info.runs = 0;
    info.seconds = 0;
    info.work = {};
  }
}

}  // namespace cermet
