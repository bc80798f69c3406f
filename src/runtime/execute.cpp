// A run: a plan of launches, made when operands change and then called, enqueued, captured or timed.
#include <utility>

#include "base/env.hpp"
#include "kernel/communicator.hpp"
#include "kernel/cuda/peer_memory.hpp"
#include "runtime/executable_state.hpp"

namespace cermet {
namespace {

/// Calls body(); its errors name the step's place in the model.
template <class Body>
void in_scope(const StepInfo& info, Body body) try {
  body();
} catch (const Error& error) {
  if (info.scope.empty()) throw;
  throw Error(error.status(), fmt::format("{}: {}", info.scope, error.what()));
}

void line_up(std::span<Communicator* const> communicators) {
  for (Communicator* communicator : communicators)
    if (cuda::PeerMemory* const memory = communicator->peer_memory()) memory->line_up();
}

/// Before code is loaded or memory is taken: a driver may wait for what runs on any device of the process, and that for
/// a launch of a rank which waits for the driver. What all ranks have enqueued ends by itself.
void meet(std::span<Communicator* const> communicators, Stream& stream) {
  if (!communicators.empty()) stream.synchronize();
  for (Communicator* communicator : communicators) communicator->barrier();
}

}  // namespace

LaunchArgs Executable::State::arguments(std::size_t i) const {
  const ExecutableStep& step = steps[i];
  const std::span<const TensorView> all = operands_of(i);
  return {all.first(step.inputs),
          all.subspan(step.inputs),
          memory.workspace,
          pool,
          step.queue ? &*step.queue : nullptr,
          step.communicator,
          step.communicator ? queue.stream : nullptr};
}

void Executable::State::make_plan(bool wants_ranges) {
  planned = ranges_planned = false;
  plan.clear();
  plan.want_ranges(wants_ranges);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].empty) continue;
    plan.begin_step(i);
    if (steps[i].queue) in_scope(infos[i], [&] { steps[i].launch(arguments(i)); });
    else plan.add_call();
  }
  if (super)
    super->form(plan, graph.super_kernels(), [&](std::size_t step) -> std::string_view { return infos[step].scope; });
  if (super && super->session) plan_ahead();
  planned = true;
}

/// Where a kernel did not say what a launch touches, it touches all operands of its step, and the workspace. One that
/// exchanges data touches its group, too, so that of two which need nothing of each other the second one waits for the
/// first: channels are in the middle of one exchange at a time, and the same on every rank.
void Executable::State::plan_ranges() {
  for (Launch& launch : plan.launches()) {
    if (launch.declared) continue;
    const LaunchArgs args = arguments(launch.step);
    reads.clear();
    writes.clear();
    for (const TensorView& view : args.inputs)
      if (view.present) reads.push_back(byte_range(view));
    for (const TensorView& view : args.outputs) writes.push_back(byte_range(view));
    if (const std::int64_t bytes = steps[launch.step].workspace_bytes; bytes > 0) {
      reads.push_back({memory.workspace, bytes});
      writes.push_back({memory.workspace, bytes});
    }
    if (const Communicator* const group = steps[launch.step].communicator)
      writes.push_back({reinterpret_cast<const std::byte*>(group), 1});
    plan.complete(launch, reads, writes);
  }
  ranges_planned = true;
}

/// Ranks that share a device would keep each other from arriving by what is beside; regions make their calls' launches
/// themselves.
void Executable::State::find_calls_beside() {
  beside.forget();
  const auto shares_device = [](Communicator* group) {
    return group->peer_memory() && group->peer_memory()->ranks_on_device() > 1;
  };
  if (!queue.stream || super || communicators.empty() || std::ranges::any_of(communicators, shares_device)) return;
  make_plan(true);
  plan_ranges();
  beside.find(plan, [&](const Launch& launch) { return steps[launch.step].communicator != nullptr; });
}

/// `launch` makes all launches of the plan in their order.
void Executable::State::make_in_order(FunctionRef<void()> launch) {
  if (beside.count() == 0 || stream != queue.stream || row > 1) return launch();
  struct Scope {
    bool& on;
    explicit Scope(bool& flag) : on(flag) { on = true; }
    ~Scope() { on = false; }
  };
  beside.begin(*queue.device, *stream);
  const Scope scope(calls_go_beside);
  launch();
  beside.end();
}

void Executable::State::call(const Launch& launch) {
  const auto at = static_cast<std::size_t>(&launch - plan.launches().data());
  Stream* const side = calls_go_beside ? beside.stream_for(at) : nullptr;
  LaunchArgs args = arguments(launch.step);
  if (side) args.stream = side;
  steps[launch.step].launch(args);
  if (side) beside.made(at);
}

void Executable::State::execute(const Launch& launch) {
  StepInfo& info = infos[launch.step];
  const StreamRange range(stream, info.scope.empty() ? info.kernel.c_str() : info.scope.c_str());
  in_scope(info, [&] {
    if (launch.kind == Launch::Kind::call) return call(launch);
    if (calls_go_beside) beside.stream_for(static_cast<std::size_t>(&launch - plan.launches().data()));
    plan.enqueue(launch, *stream);
  });
  info.fallbacks += launch.fallback;
}

/// Region after region: on the CPU the pool's threads stay in one, unless a barrier after every launch was asked for.
void Executable::State::launch_in_order(FunctionRef<void(const Launch& launch)> launch) {
  const std::span<const Launch> all = wanted_launches();
  std::size_t next = 0;
  const auto launch_until = [&](std::size_t end) {
    for (; next < end; ++next) launch(all[next]);
  };
  if (super && super->session)
    for (const SuperRegion& region : super->formation.regions) {
      launch_until(region.first_launch);
      walk_region(region, launch);
      next = region.end_launch;
    }
  launch_until(all.size());
}

void Executable::State::launch_all() {
  make_in_order([&] { launch_in_order([&](const Launch& launch) { execute(launch); }); });
}

/// A row of runs is captured as one graph. Launches the first time, captures the second on the queue's stream, and then
/// replays.
void Executable::State::replay() {
  CapturedRun& run = captures.get(memory.symbols, memory.used_symbols, row);
  if (!run.graph) {
    meet(communicators, *stream);
    if (!std::exchange(run.warm, true)) {
      for (std::int64_t i = 0; i < row; ++i) launch_all();
      return;
    }
    if (super) run.regions = link_regions();
    Stream* const wanted = std::exchange(stream, queue.stream);  // the caller's may be one that cannot be captured
    stream->begin_capture();
    try {
      make_in_order([&] { launch_rows(run.regions); });
      run.graph = stream->end_capture();
    } catch (...) {
      stream->abandon_capture();
      stream = wanted;
      throw;
    }
    stream = wanted;
    meet(communicators, *stream);
  }
  captures.check_waits(*stream);
  const StreamRange range(stream, graph.name.c_str());
  stream->replay(*run.graph);
  captures.replayed = &run;
}

void Executable::State::execute_all() {
  if (timing.on && timing.costs.empty()) timing.note_costs(infos, memory.symbols);
  timing.launches.clear();
  timing.tasks.clear();
  captures.replayed = nullptr;
  timing.started = std::chrono::steady_clock::now();
  if (!computes) return skip_all();
  for (Communicator* communicator : communicators) communicator->check();  // replays call it no more
  if (!planned) {
    if (env::integer(env::Name::CERMET_COMM_BESIDE) != 0) find_calls_beside();
    make_plan();
  }
  line_up(communicators);
  if (selection != LaunchSelection{}) launch_selected();
  else if (timing.on) stream ? launch_all_marked() : launch_all_timed();
  else if (stream && captures.enabled && !stream->is_capturing()) replay();
  else launch_all();
  line_up(communicators);
  completed = true;
}

const Plan& Executable::plan() {
  require(state_->memory.resolved, "plan of graph '{}': expected a run before it is read, found none",
          state_->graph.name);
  if (!state_->planned || !state_->ranges_planned) {
    state_->make_plan(true);
    state_->plan_ranges();
  }
  return state_->plan;
}

const Plan& Executable::launched_plan() {
  require(state_->memory.resolved, "plan of graph '{}': expected a run before it is read, found none",
          state_->graph.name);
  if (state_->super && state_->queue.stream) state_->link_regions();
  else if (!state_->planned || state_->ranges_planned) state_->make_plan();
  return state_->plan;
}

std::size_t Executable::calls_beside() {
  require(state_->memory.resolved, "calls of graph '{}': expected a run before they are counted, found none",
          state_->graph.name);
  state_->find_calls_beside();
  return state_->beside.count();
}

const SuperFormation* Executable::super_kernels() {
  plan();
  return state_->super ? &state_->super->formation : nullptr;
}

}  // namespace cermet
