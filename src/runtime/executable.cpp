#include "runtime/executable.hpp"

#include <chrono>
#include <cstring>
#include <utility>

#include "op/grouped_work.hpp"
#include "runtime/executable_state.hpp"

namespace cermet {
namespace {

/// Whether the last `dims` dimensions are dense among themselves; strides of single elements do not matter.
bool trailing_dense(const TensorView& view, int dims) {
  std::int64_t step = 1;
  for (int axis = view.shape.rank() - 1; axis >= std::max(0, view.shape.rank() - dims); --axis) {
    if (view.shape[axis] != 1 && view.strides[axis] != step) return view.elements() == 0;
    step *= view.shape[axis];
  }
  return true;
}

bool fits(const TensorView& view, const TensorType& type) {
  if (view.dtype != type.dtype || view.shape.rank() != type.rank()) return false;
  for (int axis = 0; axis < type.rank(); ++axis) {
    const Dim& d = type.dims[static_cast<std::size_t>(axis)];
    if (view.shape[axis] < 0 || (d.is_constant() && d.constant() != view.shape[axis])) return false;
  }
  return true;
}

/// The part of bound memory that a run uses; nothing when its dimensions do not fit.
std::optional<TensorView> used_part(const TensorView& memory, const Dims& dims, const SymbolValues& symbols) {
  TensorView used = memory;
  for (int axis = 0; axis < memory.shape.rank(); ++axis) {
    used.shape[axis] = dims[static_cast<std::size_t>(axis)].value(symbols);
    if (used.shape[axis] < 0 || (axis == 0 ? used.shape[0] > memory.shape[0] : used.shape[axis] != memory.shape[axis])) return {};
  }
  return used;
}

/// Operations and bytes of a region with these symbols.
Cost cost_at(Region region, const SymbolValues& symbols) {
  region.set_maximum(symbols);
  return cost_of(region);
}

}  // namespace

Executable::Executable(std::unique_ptr<State> state) : state_(std::move(state)) {}
Executable::Executable(Executable&&) noexcept = default;
Executable& Executable::operator=(Executable&&) noexcept = default;
Executable::~Executable() = default;

void Executable::bind(std::string_view input, const TensorView& memory) {
  const ValueId id = state_->graph.find(input);
  require(id && state_->graph.value(id).kind == ValueKind::input, "input '{}': expected an input of graph '{}', found none of that name", input,
          state_->graph.name);
  InputBinding& binding = state_->inputs[static_cast<std::size_t>(state_->input_of_value[static_cast<std::size_t>(id.index)])];
  const TensorType& type = state_->graph.type(id);
  // Type names are formatted only on failure: binding allocates nothing.
  if (!memory.present) fail(Status::invalid_argument, "input '{}': expected memory of type {}, found none", input, type.to_string());
  if (!fits(memory, type)) fail(Status::invalid_argument, "input '{}': expected {}, found {}", input, type.to_string(), memory.type().to_string());
  if (!trailing_dense(memory, binding.dense_dims))
    fail(Status::invalid_argument, "input '{}': expected the last {} dimensions to be dense, found dimensions {} with strides {}", input, binding.dense_dims,
         memory.shape.to_string(), memory.strides.to_string());
  require(memory.data || memory.elements() == 0 || !state_->computes, "input '{}': expected memory, found a null pointer", input);
  binding.memory = memory;
  state_->rebound = true;
}

void Executable::State::check_symbols(const SymbolValues& values) const {
  for (const SymbolId id : used_symbols) {
    const std::int64_t value = values.value[id];
    if (value < 0 || value > maximum.value[id])
      fail(Status::invalid_argument, "symbol '{}': expected 0 to {}, found {}", symbol_name(id), maximum.value[id], value);
  }
}

bool Executable::State::same_symbols(const SymbolValues& values) const {
  return resolved && std::all_of(used_symbols.begin(), used_symbols.end(), [&](SymbolId id) { return values.value[id] == symbols.value[id]; });
}

void Executable::State::refresh_inputs(const SymbolValues& values) {
  for (const InputBinding& input : inputs) {
    const Value& value = graph.value(input.value);
    if (!input.memory.present) fail(Status::invalid_argument, "input '{}': expected memory of type {}, found none bound", value.name, value.type.to_string());
    const std::optional<TensorView> used = used_part(input.memory, value.type.dims, values);
    if (!used)
      fail(Status::invalid_argument, "input '{}': expected room for {} = {}, found {}", value.name, value.type.to_string(),
           cermet::bind(value.type.dims, values).to_string(), input.memory.shape.to_string());
    views[static_cast<std::size_t>(input.value.index)] = *used;
  }
  for (std::size_t v = 0; v < views.size(); ++v)
    if (input_of_value[v] >= 0) views[v] = views[static_cast<std::size_t>(inputs[static_cast<std::size_t>(input_of_value[v])].value.index)];
  for (const std::size_t i : bound_operands) operands[i] = views[static_cast<std::size_t>(operand_value[i])];
}

void Executable::State::refresh_symbolic(const SymbolValues& values) {
  for (const std::int32_t v : symbolic_values) {
    const auto index = static_cast<std::size_t>(v);
    const TensorType& type = graph.values()[index].type;
    dense_bytes(type, values);
    views[index] = make_view(arena.data() + memory.offset[index], layouts[index], type.dtype, cermet::bind(type.dims, values));
  }
  for (const std::size_t i : symbolic_operands) operands[i] = views[static_cast<std::size_t>(operand_value[i])];
  for (ExecutableStep& step : steps) {
    const auto outputs = std::span(operands).subspan(step.first + step.inputs, step.outputs);
    step.empty = std::all_of(outputs.begin(), outputs.end(), [](const TensorView& view) { return view.elements() == 0; });
  }
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
  if (queue.stream) queue.stream->download(offsets[i].view.data, source.data, bytes);
  else std::memcpy(offsets[i].view.data, source.data, static_cast<std::size_t>(bytes));
}

/// The cost of a step that has run: only the weights of groups with rows were read.
Cost Executable::State::work_of(std::size_t i) const {
  Cost cost = costs[i];
  if (!computes || i >= offsets.size() || offsets[i].memory.size() == 0) return cost;
  Problem problem = infos[i].region.problem();
  problem.maximum = symbols;
  const GroupedWork work = grouped_work(problem);
  cost.bytes += work.bytes_per_group * static_cast<double>(used_groups(offsets[i].view) - work.groups);
  return cost;
}

void Executable::State::add_work(std::size_t i, double start, double seconds) {
  const Cost work = work_of(i);
  launches.push_back({i, start, seconds, work});
  infos[i].seconds += seconds;
  infos[i].work.operations += work.operations;
  infos[i].work.bytes += work.bytes;
  ++infos[i].runs;
}

void Executable::State::launch_timed(std::size_t i, const LaunchArgs& args) {
  using Seconds = std::chrono::duration<double>;
  const auto start = std::chrono::steady_clock::now();
  steps[i].launch(args);
  const auto end = std::chrono::steady_clock::now();
  keep_offsets(i);
  add_work(i, Seconds(start - started).count(), Seconds(end - start).count());
}

void Executable::State::launch(std::size_t i) try {
  const ExecutableStep& step = steps[i];
  const std::span<const TensorView> all(operands);
  const LaunchArgs args{all.subspan(step.first, step.inputs), all.subspan(step.first + step.inputs, step.outputs), workspace, pool,
                        step.queue ? &*step.queue : nullptr};
  const StreamRange range(queue.stream, infos[i].scope.empty() ? infos[i].kernel.c_str() : infos[i].scope.c_str());
  if (timing && !queue.stream) launch_timed(i, args);
  else step.launch(args);
  if (step.queue) infos[i].fallbacks = step.queue->fallbacks();
} catch (const Error& error) {
  if (infos[i].scope.empty()) throw;
  throw Error(error.status(), fmt::format("{}: {}", infos[i].scope, error.what()));
}

void Executable::State::launch_all() {
  for (std::size_t i = 0; i < steps.size(); ++i)
    if (!steps[i].empty) launch(i);
}

/// A run on a device that computes nothing.
void Executable::State::skip_all() {
  for (std::size_t i = 0; timing && i < steps.size(); ++i)
    if (!steps[i].empty) add_work(i, 0, 0);
  completed = true;
}

/// Events between the steps give their times on a device; the host waits for the end.
void Executable::State::launch_all_marked() {
  while (marks.size() < 2 * steps.size()) marks.push_back(queue.stream->make_event());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].empty) continue;
    queue.stream->record(*marks[2 * i]);
    launch(i);
    queue.stream->record(*marks[2 * i + 1]);
    keep_offsets(i);
  }
  queue.stream->synchronize();
  std::optional<std::size_t> first;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].empty) continue;
    if (!first) first = i;
    add_work(i, queue.stream->seconds_between(*marks[2 * *first], *marks[2 * i]), queue.stream->seconds_between(*marks[2 * i], *marks[2 * i + 1]));
  }
}

/// The entry for the present symbols; a new one evicts the least recently used.
CapturedRun& Executable::State::captured_run() {
  constexpr std::size_t most = 64;
  const auto holds = [&](const CapturedRun& run) {
    return std::all_of(used_symbols.begin(), used_symbols.end(), [&](SymbolId id) { return run.symbols.value[id] == symbols.value[id]; });
  };
  auto found = std::find_if(captured.begin(), captured.end(), holds);
  if (found == captured.end()) {
    if (captured.size() == most)
      captured.erase(std::min_element(captured.begin(), captured.end(), [](const auto& a, const auto& b) { return a.last_used < b.last_used; }));
    captured.push_back({symbols, nullptr, false, 0});
    found = captured.end() - 1;
  }
  found->last_used = ++runs;
  return *found;
}

/// Launches the first time, captures the second, and then replays.
void Executable::State::replay() {
  CapturedRun& run = captured_run();
  if (!run.graph) {
    if (!std::exchange(run.warm, true)) return launch_all();
    queue.stream->begin_capture();
    try {
      launch_all();
      run.graph = queue.stream->end_capture();
    } catch (...) {
      queue.stream->abandon_capture();
      throw;
    }
  }
  const StreamRange range(queue.stream, graph.name.c_str());
  queue.stream->replay(*run.graph);
}

void Executable::run(const SymbolValues& symbols) {
  State& s = *state_;
  s.check_symbols(symbols);
  const bool same = s.same_symbols(symbols);
  s.completed = false;
  if (!same || s.rebound) {
    s.resolved = false;  // until all of it has succeeded
    s.costs.clear();
    if (s.rebound) s.captured.clear();
    s.refresh_inputs(symbols);
    if (!same) s.refresh_symbolic(symbols);
    s.symbols = symbols;
    s.rebound = false;
    s.resolved = true;
  }
  if (s.timing && s.costs.empty())
    for (const StepInfo& info : s.infos) s.costs.push_back(cost_at(info.region, symbols));
  s.launches.clear();
  s.started = std::chrono::steady_clock::now();
  if (!s.computes) return s.skip_all();
  if (s.timing && s.queue.stream) s.launch_all_marked();
  else if (s.queue.stream && s.capture) s.replay();
  else s.launch_all();
  s.completed = true;
}

TensorView Executable::output(std::string_view name) const {
  for (const GraphOutput& output : state_->graph.outputs()) {
    if (output.name != name) continue;
    require(state_->completed, "output '{}': expected a run that completed before it is read, found none", name);
    return state_->views[static_cast<std::size_t>(output.value.index)];
  }
  fail(Status::invalid_argument, "output '{}': expected an output of graph '{}', found none of that name", name, state_->graph.name);
}

std::int64_t Executable::arena_bytes() const { return state_->arena.size(); }
std::span<const StepInfo> Executable::steps() const { return state_->infos; }
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
