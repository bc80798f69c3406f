#include "runtime/executable.hpp"

#include <algorithm>

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

bool is_same(const TensorView& a, const TensorView& b) {
  return a.present && b.present && a.data == b.data && a.dtype == b.dtype && a.shape == b.shape &&
         a.strides == b.strides;
}

/// The part of bound memory that a run uses; nothing when its dimensions do not fit.
std::optional<TensorView> used_part(const TensorView& memory, const Dims& dims, const SymbolValues& symbols) {
  TensorView used = memory;
  for (int axis = 0; axis < memory.shape.rank(); ++axis) {
    used.shape[axis] = dims[static_cast<std::size_t>(axis)].value(symbols);
    if (used.shape[axis] < 0 || (axis == 0 ? used.shape[0] > memory.shape[0] : used.shape[axis] != memory.shape[axis]))
      return {};
  }
  return used;
}

}  // namespace

Executable::Executable(std::unique_ptr<State> state) : state_(std::move(state)) {}
Executable::Executable(Executable&&) noexcept = default;
Executable& Executable::operator=(Executable&&) noexcept = default;
Executable::~Executable() = default;

void Executable::bind(std::string_view input, const TensorView& memory) {
  const ValueId id = state_->graph.find(input);
  require(id && state_->graph.value(id).kind == ValueKind::input,
          "input '{}': expected an input of graph '{}', found none of that name", input, state_->graph.name);
  InputBinding& binding =
      state_->inputs[static_cast<std::size_t>(state_->input_of_value[static_cast<std::size_t>(id.index)])];
  if (is_same(binding.memory, memory)) return;  // what was captured holds on
  const TensorType& type = state_->graph.type(id);
  // Type names are formatted only on failure: binding allocates nothing.
  if (!memory.present)
    fail(Status::invalid_argument, "input '{}': expected memory of type {}, found none", input, type.to_string());
  if (!fits(memory, type))
    fail(Status::invalid_argument, "input '{}': expected {}, found {}", input, type.to_string(),
         memory.type().to_string());
  if (!trailing_dense(memory, binding.dense_dims))
    fail(Status::invalid_argument,
         "input '{}': expected the last {} dimensions to be dense, found dimensions {} with strides {}", input,
         binding.dense_dims, memory.shape.to_string(), memory.strides.to_string());
  require(memory.data || memory.elements() == 0 || !state_->computes,
          "input '{}': expected memory, found a null pointer", input);
  binding.memory = memory;
  state_->rebound = true;
}

void Executable::State::check_symbols(const SymbolValues& values) const {
  for (const Symbol& id : used_symbols) {
    const std::int64_t value = values[id];
    if (value < 0 || value > maximum[id])
      fail(Status::invalid_argument, "symbol '{}': expected 0 to {}, found {}", id.name(), maximum[id], value);
  }
}

bool Executable::State::same_symbols(const SymbolValues& values) const {
  return resolved && std::all_of(used_symbols.begin(), used_symbols.end(),
                                 [&](const Symbol& id) { return values[id] == symbols[id]; });
}

void Executable::State::refresh_inputs(const SymbolValues& values) {
  for (const InputBinding& input : inputs) {
    const Value& value = graph.value(input.value);
    if (!input.memory.present)
      fail(Status::invalid_argument, "input '{}': expected memory of type {}, found none bound", value.name,
           value.type.to_string());
    const std::optional<TensorView> used = used_part(input.memory, value.type.dims, values);
    if (!used)
      fail(Status::invalid_argument, "input '{}': expected room for {} = {}, found {}", value.name,
           value.type.to_string(), cermet::bind(value.type.dims, values).to_string(), input.memory.shape.to_string());
    views[static_cast<std::size_t>(input.value.index)] = *used;
  }
  for (std::size_t v = 0; v < views.size(); ++v)
    if (input_of_value[v] >= 0)
      views[v] = views[static_cast<std::size_t>(inputs[static_cast<std::size_t>(input_of_value[v])].value.index)];
  for (const std::size_t i : bound_operands) operands[i] = views[static_cast<std::size_t>(operand_value[i])];
}

void Executable::State::refresh_symbolic(const SymbolValues& values) {
  for (const std::int32_t v : symbolic_values)
    views[static_cast<std::size_t>(v)] = view_of(static_cast<std::size_t>(v), values);
  for (const std::size_t i : symbolic_operands) operands[i] = views[static_cast<std::size_t>(operand_value[i])];
  for (ExecutableStep& step : steps) {
    const auto outputs = std::span(operands).subspan(step.first + step.inputs, step.outputs);
    step.empty =
        std::all_of(outputs.begin(), outputs.end(), [](const TensorView& view) { return view.elements() == 0; });
  }
}

/// Brings operands to what the symbols and the bound memory say.
void Executable::resolve(const SymbolValues& symbols, Stream* on) {
  State& s = *state_;
  s.stream = on ? on : s.queue.stream;
  s.check_symbols(symbols);
  const bool same = s.same_symbols(symbols);
  s.completed = false;
  if (!same || s.rebound) {
    s.resolved = s.planned = false;  // until all of it has succeeded
    s.costs.clear();
    if (s.rebound) s.captured.clear(), s.replayed = nullptr;
    s.refresh_inputs(symbols);
    if (!same) s.refresh_symbolic(symbols);
    if (s.rebound) s.refresh_results(symbols);
    s.symbols = symbols;
    s.rebound = false;
    s.resolved = true;
  }
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
  if (s.holds_rows()) s.super->session->hold(*s.pool, all);
  else all();
}

/// Where an intermediate value is with these symbols: in the arena, or in memory that is bound to a result.
TensorView Executable::State::view_of(std::size_t value, const SymbolValues& values) const {
  const TensorType& type = graph.values()[value].type;
  dense_bytes(type, values);
  const std::int32_t result = result_of_value[value];
  std::byte* const given = result >= 0 ? results[static_cast<std::size_t>(result)].memory : nullptr;
  return make_view(given ? given : arena.data() + memory.offset[value], layouts[value], type.dtype,
                   cermet::bind(type.dims, values));
}

void Executable::State::refresh_results(const SymbolValues& values) {
  for (std::size_t v = 0; v < views.size(); ++v)
    if (result_of_value[v] >= 0) views[v] = view_of(v, values);
  for (const std::size_t i : result_operands) operands[i] = views[static_cast<std::size_t>(operand_value[i])];
}

bool Executable::bind_result(std::string_view output, std::byte* memory) {
  if (!has_output(output))
    fail(Status::invalid_argument, "output '{}': expected an output of graph '{}', found none of that name", output,
         state_->graph.name);
  for (ResultBinding& result : state_->results) {
    if (result.name != output) continue;
    state_->rebound = state_->rebound || result.memory != memory;
    result.memory = memory;
    return true;
  }
  return false;
}

TensorView Executable::output(std::string_view name) const {
  for (const GraphOutput& output : state_->graph.outputs()) {
    if (output.name != name) continue;
    require(state_->completed, "output '{}': expected a run that completed before it is read, found none", name);
    return state_->views[static_cast<std::size_t>(output.value.index)];
  }
  fail(Status::invalid_argument, "output '{}': expected an output of graph '{}', found none of that name", name,
       state_->graph.name);
}

bool Executable::has_output(std::string_view name) const {
  return std::ranges::find(state_->graph.outputs(), name, &GraphOutput::name) != state_->graph.outputs().end();
}

std::int64_t Executable::arena_bytes() const { return state_->arena.size(); }
std::span<const StepInfo> Executable::steps() const { return state_->infos; }
}  // namespace cermet
