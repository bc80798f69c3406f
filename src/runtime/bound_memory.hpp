// Where the values of a graph and the operands of its steps are: in one arena, or in memory that the caller bound.
#pragma once

#include <string_view>
#include <vector>

#include "device/device.hpp"
#include "graph/graph.hpp"
#include "runtime/memory_plan.hpp"
#include "runtime/view_layout.hpp"

namespace cermet {

/// Memory that the caller bound to an input of the graph.
struct InputBinding {
  ValueId value;
  int dense_dims = 1;  ///< trailing dimensions that the operators which read it need dense among themselves
  TensorView memory;   ///< `present` once bound
};

/// A result that a caller may take in memory of its own, and that memory; null: the arena.
struct ResultBinding {
  std::string_view name;
  std::byte* memory = nullptr;
};

/// Compile steps fill it; runs bring it to their symbols. `graph`: the one that was compiled.
struct BoundMemory {
  SymbolValues maximum, symbols;  ///< symbols: of the last run
  std::vector<Symbol> used_symbols;
  bool resolved = false;  ///< `views` and `operands` hold for `symbols`
  bool rebound = true;    ///< memory was bound since they were resolved

  MemoryPlan plan;
  std::vector<ValueLayout> layouts;  ///< by value
  DeviceBuffer arena;                ///< planned values, then the workspace that all steps share
  std::byte* workspace = nullptr;

  std::vector<InputBinding> inputs;
  std::vector<std::int32_t> input_of_value;  ///< position in `inputs` of the root of a value; -1 for others
  std::vector<ResultBinding> results;
  std::vector<std::int32_t>
      result_of_value;            ///< position in `results` of the value with the same memory; -1 for others
  std::vector<TensorView> views;  ///< by value; of constants only those that are results of the graph
  std::vector<std::int32_t> symbolic_values;

  std::vector<TensorView> operands;            ///< of all steps, one after the other
  std::vector<std::int32_t> operand_value;     ///< by operand; -1 where it never changes
  std::vector<std::size_t> symbolic_operands;  ///< to refresh when a symbol changes
  std::vector<std::size_t> bound_operands;     ///< to refresh when memory is bound
  std::vector<std::size_t> result_operands;    ///< to refresh when memory is bound to a result

  /// As Executable::bind() says. `computes`: of the device.
  void bind(const Graph& graph, std::string_view input, const TensorView& memory, bool computes);
  /// False where the result has no memory of its own.
  bool bind_result(std::string_view output, std::byte* memory);
  /// Throws Error where a symbol exceeds its maximum.
  void check(const SymbolValues& values) const;
  /// Whether views hold for these symbols, but for what was bound since.
  bool holds(const SymbolValues& values) const;
  /// Brings views and operands to these symbols and to the bound memory. Throws Error where an input is not bound, or
  /// too short.
  void resolve(const Graph& graph, const SymbolValues& values);
  /// Where an intermediate value is with these symbols: in the arena, or in memory that is bound to a result.
  TensorView view_of(const Graph& graph, std::size_t value, const SymbolValues& values) const;

 private:
  void refresh_inputs(const Graph& graph, const SymbolValues& values);
  void refresh_symbolic(const Graph& graph, const SymbolValues& values);
  void refresh_results(const Graph& graph, const SymbolValues& values);
};

}  // namespace cermet
