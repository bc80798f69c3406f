#include "runtime/bound_memory.hpp"

#include <algorithm>

#include "base/error.hpp"

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

void BoundMemory::bind(const Graph& graph, std::string_view input, const TensorView& memory, bool computes) {
  const ValueId id = graph.find(input);
  require(id && graph.value(id).kind == ValueKind::input,
          "input '{}': expected an input of graph '{}', found none of that name", input, graph.name);
  InputBinding& binding = inputs[static_cast<std::size_t>(input_of_value[static_cast<std::size_t>(id.index)])];
  if (is_same(binding.memory, memory)) return;  // what was captured holds on
  const TensorType& type = graph.type(id);
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
  require(memory.data || memory.elements() == 0 || !computes, "input '{}': expected memory, found a null pointer",
          input);
  binding.memory = memory;
  rebound = true;
}

bool BoundMemory::bind_result(std::string_view output, std::byte* memory) {
  const auto result = std::ranges::find(results, output, &ResultBinding::name);
  if (result == results.end()) return false;
  rebound = rebound || result->memory != memory;
  result->memory = memory;
  return true;
}

void BoundMemory::check(const SymbolValues& values) const {
  for (const Symbol& id : used_symbols) {
    const std::int64_t value = values[id];
    if (value < 0 || value > maximum[id])
      fail(Status::invalid_argument, "symbol '{}': expected 0 to {}, found {}", id.name(), maximum[id], value);
  }
}

bool BoundMemory::holds(const SymbolValues& values) const {
  return resolved && std::all_of(used_symbols.begin(), used_symbols.end(),
                                 [&](const Symbol& id) { return values[id] == symbols[id]; });
}

void BoundMemory::refresh_inputs(const Graph& graph, const SymbolValues& values) {
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
  for (std::size_t v = 0; v < views.size(); ++v) {
    if (input_of_value[v] < 0) continue;
    const ValueId input = inputs[static_cast<std::size_t>(input_of_value[v])].value;
    const TensorType& type = graph.values()[v].type;
    const bool is_same = layouts[v].is_dense() && type == graph.type(input);  // else seen with other dimensions
    views[v] =
        is_same ? views[input.at()]
                : make_view(views[input.at()].as<std::byte>(), layouts[v], type.dtype, cermet::bind(type.dims, values));
  }
  for (const std::size_t i : bound_operands) operands[i] = views[static_cast<std::size_t>(operand_value[i])];
}

void BoundMemory::refresh_symbolic(const Graph& graph, const SymbolValues& values) {
  for (const std::int32_t v : symbolic_values)
    views[static_cast<std::size_t>(v)] = view_of(graph, static_cast<std::size_t>(v), values);
  for (const std::size_t i : symbolic_operands) operands[i] = views[static_cast<std::size_t>(operand_value[i])];
}

void BoundMemory::resolve(const Graph& graph, const SymbolValues& values) {
  const bool same = holds(values);
  if (same && !rebound) return;
  resolved = false;  // until all of it has succeeded
  refresh_inputs(graph, values);
  if (!same) refresh_symbolic(graph, values);
  if (rebound) refresh_results(graph, values);
  symbols = values;
  rebound = false;
  resolved = true;
}

TensorView BoundMemory::view_of(const Graph& graph, std::size_t value, const SymbolValues& values) const {
  const TensorType& type = graph.values()[value].type;
  dense_bytes(type, values);
  const std::int32_t result = result_of_value[value];
  std::byte* const given = result >= 0 ? results[static_cast<std::size_t>(result)].memory : nullptr;
  return make_view(given ? given : arena.data() + plan.offset[value], layouts[value], type.dtype,
                   cermet::bind(type.dims, values));
}

void BoundMemory::refresh_results(const Graph& graph, const SymbolValues& values) {
  for (std::size_t v = 0; v < views.size(); ++v)
    if (result_of_value[v] >= 0) views[v] = view_of(graph, v, values);
  for (const std::size_t i : result_operands) operands[i] = views[static_cast<std::size_t>(operand_value[i])];
}

}  // namespace cermet
