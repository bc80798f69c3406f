// Regions of a plan on the CPU: one session of the pool each.
#include <utility>

#include "runtime/executable_state.hpp"

namespace cermet {
namespace {

double seconds_between(std::chrono::steady_clock::time_point from, std::chrono::steady_clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

/// Lets launches run on some of the threads while it lives.
class Executable::State::Threads {
 public:
  Threads(State& state, ThreadPool& few) : state_(state), all_(std::exchange(state.pool, &few)) {}
  ~Threads() { state_.pool = all_; }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  State& state_;
  ThreadPool* all_;
};

/// What threads that wait in a session ask memory for: constant weights of products, which no launch before writes.
/// Those of experts are known too late.
void Executable::State::plan_ahead() {
  const std::span<const Launch> all = std::as_const(plan).launches();
  super->ahead.assign(all.size(), {});
  const ReadAhead* next = nullptr;
  for (std::size_t l = all.size(); l-- > 0;) {
    const ExecutableStep& step = steps[all[l].step];
    const Region& region = infos[all[l].step].region;
    ReadAhead& one = super->ahead[l];
    one.next = next;
    const OpKind op = region.problem().op->kind;
    if (op != OpKind::linear && op != OpKind::dual_linear) continue;
    const std::optional<std::size_t> weight = region.operand_of(1);
    if (!weight) continue;
    const std::int32_t value = memory.operand_value[step.first + *weight];
    if (value < 0 || graph.values()[static_cast<std::size_t>(value)].kind != ValueKind::constant) continue;
    const TensorView& view = memory.operands[step.first + *weight];
    one.begin = view.as<const std::byte>();
    one.bytes = dense_bytes(view.dtype, view.shape);
    next = &one;
  }
}

/// The pool's threads leave the session where a launch waits for other ranks, whose loops may need the same threads.
/// With a barrier after every launch there is no session. Errors say which launch of which region they are of.
void Executable::State::walk_region(const SuperRegion& region, FunctionRef<void(const Launch& launch)> run) {
  const std::span<const Launch> all = std::as_const(plan).launches();
  const auto launch = [&](const Launch& one) {
    try {
      run(one);
    } catch (const Error& error) {
      throw Error(error.status(),
                  fmt::format("super-kernel '{}', launch {}: {}", region.name, &one - all.data(), error.what()));
    }
  };
  ThreadPool few(*pool, region.options.width > 0 ? static_cast<int>(region.options.width) : pool->size());
  const Threads own(*this, few);
  const auto is_apart = [&](std::size_t l) { return steps[all[l].step].communicator != nullptr; };
  const auto walk = [&](std::size_t first, std::size_t end) {
    if (region.options.profile) return walk_noted(region, first, end, launch);
    const bool swaps = selection.too_early > first && selection.too_early < end;
    for (std::size_t l = first; l < end; ++l) {
      super->session->set_ahead(region.options.prefetch ? &super->ahead[l] : nullptr);
      const bool is_early = swaps && l + 1 == selection.too_early, is_late = swaps && l == selection.too_early;
      launch(all[is_early ? l + 1 : is_late ? l - 1 : l]);
    }
  };
  for (std::size_t next = region.first_launch, end = next; next < region.end_launch; next = end) {
    end = next + 1;
    if (region.options.debug_sync_all || is_apart(next)) {
      walk(next, end);
      continue;
    }
    while (end < region.end_launch && !is_apart(end)) ++end;
    super->session->hold(few, [&] { walk(next, end); });
  }
}

/// The caller's task is the launch; the other threads' are their parts of its loops.
void Executable::State::walk_noted(const SuperRegion& region, std::size_t first, std::size_t end,
                                   FunctionRef<void(const Launch& launch)> launch) {
  using Clock = std::chrono::steady_clock;
  const std::span<const Launch> all = std::as_const(plan).launches();
  const auto add = [&](std::size_t step, int thread, Clock::time_point from, Clock::time_point to) {
    const double begin = seconds_between(timing.started, from), stop = seconds_between(timing.started, to);
    timing.tasks.push_back({region.name, step, thread, begin, begin, stop, stop});
  };
  super->session->start_notes();
  for (std::size_t l = first; l < end; ++l) {
    super->session->set_ahead(region.options.prefetch ? &super->ahead[l] : nullptr);
    super->session->set_tag(static_cast<std::int64_t>(all[l].step));
    const auto begin = Clock::now();
    launch(all[l]);
    add(all[l].step, 0, begin, Clock::now());
  }
  for (const PartTime& part : super->session->take_notes())
    if (part.thread > 0) add(static_cast<std::size_t>(part.tag), part.thread, part.begin, part.end);
}

}  // namespace cermet
