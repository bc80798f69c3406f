#include "runtime/executable.hpp"

#include <algorithm>

#include "runtime/executable_state.hpp"

namespace cermet {
namespace {

ValueId output_named(const Graph& graph, std::string_view name) {
  const auto output = std::ranges::find(graph.outputs(), name, &GraphOutput::name);
  if (output == graph.outputs().end())
    fail(Status::invalid_argument, "output '{}': expected an output of graph '{}', found none of that name", name,
         graph.name);
  return output->value;
}

}  // namespace

Executable::Executable(std::unique_ptr<State> state) : state_(std::move(state)) {}
Executable::Executable(Executable&&) noexcept = default;
Executable& Executable::operator=(Executable&&) noexcept = default;
Executable::~Executable() = default;

/// Brings operands to what the symbols and the bound memory say.
void Executable::resolve(const SymbolValues& symbols, Stream* on) {
  State& s = *state_;
  s.stream = on ? on : s.queue.stream;
  s.memory.check(symbols);
  s.completed = false;
  const bool same = s.memory.holds(symbols);
  if (same && !s.memory.rebound) return;
  s.planned = false;
  s.timing.costs.clear();
  if (s.memory.rebound) s.captures.clear();
  s.memory.resolve(s.graph, symbols);
  if (same) return;
  for (ExecutableStep& step : s.steps) {
    const auto outputs = std::span(s.memory.operands).subspan(step.first + step.inputs, step.outputs);
    step.empty = std::ranges::all_of(outputs, [](const TensorView& view) { return view.elements() == 0; });
  }
}

void Executable::bind(std::string_view input, const TensorView& memory) {
  state_->memory.bind(state_->graph, input, memory, state_->computes);
}

void Executable::take_weights(WeightStore& weights) {
  State& s = *state_;
  if (!s.computes) return;
  bool moved = false;
  const auto take = [&](TensorView& view, ValueId id, const WeightLayout* layout) {
    const TensorView now = weights.get(s.graph, id, layout);
    moved = moved || now.data != view.data;
    view = now;
  };
  const auto is_constant = [&](ValueId id) { return id && s.graph.value(id).kind == ValueKind::constant; };
  for (std::size_t i = 0; i < s.steps.size(); ++i)
    for (std::size_t o = 0; o < s.steps[i].inputs; ++o) {
      const std::size_t at = s.steps[i].first + o;
      if (const ValueId id{s.memory.operand_value[at]}; is_constant(id))
        take(s.memory.operands[at], id, s.infos[i].layouts[o]);
    }
  for (const GraphOutput& output : s.graph.outputs())
    if (is_constant(output.value)) take(s.memory.views[output.value.at()], output.value, nullptr);
  weights.clear_scratch();
  weights.wait();
  if (!moved) return;
  s.planned = false;
  s.captures.clear();
}

void Executable::run(const SymbolValues& symbols, Stream* on) {
  resolve(symbols, on);
  state_->execute_all();
}

void Executable::run_row(const SymbolValues& symbols, std::int64_t count, FunctionRef<bool(std::int64_t run)> after) {
  State& s = *state_;
  if (s.stream_captures()) {
    resolve(symbols, nullptr);
    const struct Row {
      State& state;
      Row(State& of, std::int64_t runs) : state(of) { state.row = runs; }
      ~Row() { state.row = 1; }
    } row(s, count);
    return s.execute_all();
  }
  const auto all = [&] {
    for (std::int64_t i = 0; i < count; ++i) {
      run(symbols);
      if (!s.queue.stream && !after(i)) break;
    }
  };
  if (s.super && s.communicators.empty() && s.super->holds_rows()) s.super->session->hold(*s.pool, all);
  else all();
}

bool Executable::bind_result(std::string_view output, std::byte* memory) {
  output_named(state_->graph, output);
  return state_->memory.bind_result(output, memory);
}

TensorView Executable::output(std::string_view name) const {
  const ValueId value = output_named(state_->graph, name);
  require(state_->completed, "output '{}': expected a run that completed before it is read, found none", name);
  return state_->memory.views[value.at()];
}

std::string_view Executable::input_of_output(std::string_view name) const {
  const BoundMemory& memory = state_->memory;
  const ValueId value = output_named(state_->graph, name);
  const std::int32_t input = memory.input_of_value[value.at()];
  return input < 0 ? std::string_view()
                   : state_->graph.value(memory.inputs[static_cast<std::size_t>(input)].value).name;
}

bool Executable::has_output(std::string_view name) const {
  return std::ranges::find(state_->graph.outputs(), name, &GraphOutput::name) != state_->graph.outputs().end();
}

std::int64_t Executable::arena_bytes() const { return state_->memory.arena.size(); }
std::span<const StepInfo> Executable::steps() const { return state_->infos; }

}  // namespace cermet
