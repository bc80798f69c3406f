#include "runtime/executable.hpp"

#include <algorithm>

#include "runtime/executable_state.hpp"

namespace cermet {

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
  if (!has_output(output))
    fail(Status::invalid_argument, "output '{}': expected an output of graph '{}', found none of that name", output,
         state_->graph.name);
  return state_->memory.bind_result(output, memory);
}

TensorView Executable::output(std::string_view name) const {
  for (const GraphOutput& output : state_->graph.outputs()) {
    if (output.name != name) continue;
    require(state_->completed, "output '{}': expected a run that completed before it is read, found none", name);
    return state_->memory.views[static_cast<std::size_t>(output.value.index)];
  }
  fail(Status::invalid_argument, "output '{}': expected an output of graph '{}', found none of that name", name,
       state_->graph.name);
}

bool Executable::has_output(std::string_view name) const {
  return std::ranges::find(state_->graph.outputs(), name, &GraphOutput::name) != state_->graph.outputs().end();
}

std::int64_t Executable::arena_bytes() const { return state_->memory.arena.size(); }
std::span<const StepInfo> Executable::steps() const { return state_->infos; }

}  // namespace cermet
