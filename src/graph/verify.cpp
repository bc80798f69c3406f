#include "graph/verify.hpp"

#include <unordered_set>

#include "graph/memory.hpp"
#include "graph/super_kernel_options.hpp"
#include "op/schema/operator.hpp"

namespace cermet {
namespace {

using Violation = std::optional<std::string>;

std::string describe(const Graph& graph, std::size_t n) {
  const Node& node = graph.nodes()[n];
  const std::string where = node.scope.empty() ? "" : node.scope + ": ";
  return fmt::format("{}node {} ({})", where, n, definition(node.op).name);
}

const std::string& name_of(const Graph& graph, ValueId id) { return graph.value(id).name; }

/// Calls check(node's position, node) for every node and returns the first violation.
template <class Check>
Violation first_of_nodes(const Graph& graph, Check check) {
  for (std::size_t n = 0; n < graph.nodes().size(); ++n)
    if (Violation v = check(n, graph.nodes()[n])) return fmt::format("{}: {}", describe(graph, n), *v);
  return {};
}

template <class Check>
Violation first_of_values(const Graph& graph, Check check) {
  for (std::size_t v = 0; v < graph.values().size(); ++v)
    if (Violation found = check(graph.values()[v]))
      return fmt::format("value '{}': {}", graph.values()[v].name, *found);
  return {};
}

Violation names_unique(const Graph& graph) {
  for (const Value& value : graph.values()) {
    if (value.name.empty()) return "expected a name for every value, found an empty one";
    if (&graph.value(graph.find(value.name)) != &value)
      return fmt::format("value '{}': expected a name of its own, found two values of that name", value.name);
  }
  return {};
}

Violation operands_exist(const Graph& graph) {
  const auto exists = [&](ValueId id) { return id.at() < graph.values().size(); };
  Violation in_constants = first_of_values(graph, [&](const Value& value) -> Violation {
    if (!value.expression()) return {};
    for (const ValueId id : value.expression()->inputs)
      if (id.index != -1 && !exists(id))
        return fmt::format("expected operands of the graph, found value {} of {}", id.index, graph.values().size());
    return {};
  });
  if (in_constants) return in_constants;
  return first_of_nodes(graph, [&](std::size_t, const Node& node) -> Violation {
    for (const ValueId id : node.inputs)
      if (id.index != -1 && !exists(id))
        return fmt::format("expected operands of the graph, found value {} of {}", id.index, graph.values().size());
    for (const ValueId id : node.outputs)
      if (!exists(id))
        return fmt::format("expected results of the graph, found value {} of {}", id.index, graph.values().size());
    return {};
  });
}

Violation outputs_exist(const Graph& graph) {
  std::unordered_set<std::string_view> seen;
  for (const GraphOutput& output : graph.outputs()) {
    if (output.name.empty()) return "expected a name for every output, found an empty one";
    if (!seen.insert(output.name).second)
      return fmt::format("output '{}': expected a name of its own, found two outputs of that name", output.name);
    if (static_cast<std::size_t>(output.value.index) >= graph.values().size())
      return fmt::format("output '{}': expected a value of the graph, found value {} of {}", output.name,
                         output.value.index, graph.values().size());
  }
  return {};
}

Violation orders_usable(const Graph& graph) {
  const auto fault = [](const Ints& order, int rank) -> Violation {
    if (is_order(order, rank)) return {};
    return fmt::format("order: expected each of {} dimensions once, found {}", rank, to_string(AttributeValue(order)));
  };
  for (const GraphOutput& output : graph.outputs())
    if (Violation v = fault(output.order, graph.type(output.value).rank()))
      return fmt::format("output '{}': {}", output.name, *v);
  return first_of_values(graph, [&](const Value& value) { return fault(value.order, value.type.rank()); });
}

Violation updates_usable(const Graph& graph) {
  std::unordered_set<std::int32_t> seen;
  for (const auto& [input, value] : graph.updates()) {
    if (input.at() >= graph.values().size() || value.at() >= graph.values().size())
      return fmt::format("update: expected values of the graph, found value {} of {}",
                         input.at() >= graph.values().size() ? input.index : value.index, graph.values().size());
    const std::string& name = name_of(graph, input);
    if (graph.value(input).kind != ValueKind::input)
      return fmt::format("update of '{}': expected an input, found {}", name,
                         graph.value(input).kind == ValueKind::constant ? "a constant" : "a node's result");
    if (!seen.insert(input.index).second)
      return fmt::format("update of '{}': expected one of each input, found two", name);
    if (graph.type(input) != graph.type(value))
      return fmt::format("update of '{}': expected {}, found '{}': {}", name, graph.type(input).to_string(),
                         name_of(graph, value), graph.type(value).to_string());
  }
  return {};
}

Violation single_producer(const Graph& graph) {
  std::vector<std::int32_t> producer(graph.values().size(), -1);
  Violation twice = first_of_nodes(graph, [&](std::size_t n, const Node& node) -> Violation {
    for (const ValueId id : node.outputs) {
      std::int32_t& maker = producer[id.at()];
      if (maker >= 0)
        return fmt::format("result '{}': expected one producer, found node {} too", name_of(graph, id), maker);
      maker = static_cast<std::int32_t>(n);
    }
    return {};
  });
  if (twice) return twice;
  for (std::size_t v = 0; v < producer.size(); ++v) {
    const Value& value = graph.values()[v];
    if ((value.kind == ValueKind::intermediate) != (producer[v] >= 0))
      return fmt::format("value '{}': expected {}, found {}", value.name,
                         producer[v] >= 0 ? "no producer for an input or constant" : "a node that makes it",
                         producer[v] >= 0 ? fmt::format("node {}", producer[v]) : "none");
    if (value.producer != producer[v])
      return fmt::format("value '{}': expected its producer to be node {}, found {} noted", value.name, producer[v],
                         value.producer);
  }
  return {};
}

Violation defined_before_use(const Graph& graph) {
  return first_of_nodes(graph, [&](std::size_t n, const Node& node) -> Violation {
    for (const ValueId id : node.inputs)
      if (id && graph.value(id).producer >= static_cast<std::int32_t>(n))
        return fmt::format("operand '{}': expected a value that is made earlier, found one that node {} makes",
                           name_of(graph, id), graph.value(id).producer);
    return {};
  });
}

Violation dimensions_usable(const Graph& graph) {
  return first_of_values(graph, [&](const Value& value) -> Violation {
    if (value.kind == ValueKind::constant && !value.type.is_constant())
      return fmt::format("expected constant dimensions of a weight, found {}", value.type.to_string());
    if (value.type.rank() > Shape::max_rank)
      return fmt::format("expected at most {} dimensions, found {}", Shape::max_rank, value.type.rank());
    for (const Dim& d : value.type.dims)
      if (d.is_constant() ? d.constant() < 0 : !d.grows_with_symbols())
        return fmt::format("expected dimensions that are not negative and grow with their symbol, found {}",
                           value.type.to_string());
    return {};
  });
}

Violation ranges_usable(const Graph& graph) {
  const Symbol* before = nullptr;
  for (const auto& [symbol, range] : graph.ranges()) {
    if (range.least < 0 || range.greatest < range.least)
      return fmt::format("symbol '{}': expected a range from 0 on that is not empty, found {}..{}", symbol.name(),
                         range.least, range.greatest);
    if (before && !(*before < symbol))
      return fmt::format("symbol '{}': expected one range, sorted by name, found it behind '{}'", symbol.name(),
                         before->name());
    before = &symbol;
  }
  return {};
}

Violation super_kernels_known(const Graph& graph) {
  std::unordered_set<std::string_view> seen;
  for (const SuperKernel& each : graph.super_kernels()) {
    if (each.name.empty()) return "expected a name for every super-kernel, found an empty one";
    if (!seen.insert(each.name).second)
      return fmt::format("super-kernel '{}': expected a name of its own, found two of that name", each.name);
    try {
      SuperKernelOptions::parse(each.options);
    } catch (const Error& error) {
      return fmt::format("super-kernel '{}': {}", each.name, error.what());
    }
  }
  return first_of_nodes(graph, [&](std::size_t, const Node& node) -> Violation {
    if (node.super_kernel >= Node::excluded &&
        node.super_kernel < static_cast<std::int32_t>(graph.super_kernels().size()))
      return {};
    return fmt::format("expected one of {} super-kernels, found number {}", graph.super_kernels().size(),
                       node.super_kernel);
  });
}

Violation constants_computable(const Graph& graph) {
  return first_of_values(graph, [&](const Value& value) -> Violation {
    if (value.kind != ValueKind::constant && (value.data() || value.expression()))
      return "expected elements, or an expression, of a constant alone";
    if (value.data() && value.data()->type() != value.type)
      return fmt::format("expected data of its type, found {}", value.data()->type().to_string());
    const ConstantExpression* expression = value.expression();
    if (!expression) return {};
    for (const ValueId id : expression->inputs)
      if (id && &graph.value(id) >= &value)
        return fmt::format("operand '{}': expected a constant that comes earlier", name_of(graph, id));
    try {
      const TensorType type = graph.types_of(*expression).at(static_cast<std::size_t>(expression->output));
      if (type != value.type)
        return fmt::format("expected {}, what its expression gives, found {}", type.to_string(),
                           value.type.to_string());
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  });
}

Violation types_inferred(const Graph& graph) {
  return first_of_nodes(graph, [&](std::size_t, const Node& node) -> Violation {
    std::vector<TensorType> expected;
    try {
      expected = graph.problem_of(node, {}).outputs;
    } catch (const Error& error) {
      return error.what();
    }
    if (expected.size() != node.outputs.size())
      return fmt::format("expected {} results, found {}", expected.size(), node.outputs.size());
    for (std::size_t o = 0; o < expected.size(); ++o)
      if (graph.type(node.outputs[o]) != expected[o])
        return fmt::format("result '{}': expected {}, found {}", name_of(graph, node.outputs[o]),
                           expected[o].to_string(), graph.type(node.outputs[o]).to_string());
    return {};
  });
}

Violation aliases_match(const Graph& graph) {
  return first_of_nodes(graph, [&](std::size_t, const Node& node) -> Violation {
    for (std::size_t o = 0; o < node.outputs.size(); ++o) {
      const ValueId shared = overwritten_by(node, o);
      if (shared && graph.type(shared) != graph.type(node.outputs[o]))
        return fmt::format("result '{}': expected the type of operand '{}', whose memory it takes ({}), found {}",
                           name_of(graph, node.outputs[o]), name_of(graph, shared), graph.type(shared).to_string(),
                           graph.type(node.outputs[o]).to_string());
    }
    return {};
  });
}

Violation constants_never_written(const Graph& graph) {
  return first_of_nodes(graph, [&](std::size_t, const Node& node) -> Violation {
    for (std::size_t o = 0; o < node.outputs.size(); ++o) {
      const ValueId shared = overwritten_by(node, o);
      if (shared && graph.value(shared).kind == ValueKind::constant)
        return fmt::format("operand '{}': expected an input or intermediate value to update in place, found a constant",
                           name_of(graph, shared));
    }
    return {};
  });
}

Violation no_use_after_overwrite(const Graph& graph) {
  const std::vector<std::int32_t> memory = memory_roots(graph);
  std::vector<std::int32_t> last_writer(graph.values().size(), -1);  // by first value of a memory
  const auto overwriter = [&](ValueId id) {
    const std::int32_t n = last_writer[static_cast<std::size_t>(memory[id.at()])];
    return graph.value(id).producer < n ? n : -1;  // what the writer or a later node made still stands
  };
  Violation in_nodes = first_of_nodes(graph, [&](std::size_t n, const Node& node) -> Violation {
    for (const ValueId id : node.inputs)
      if (id && overwriter(id) >= 0)
        return fmt::format("operand '{}': expected a value that still stands, found one that node {} overwrote",
                           name_of(graph, id), overwriter(id));
    for (std::size_t o = 0; o < node.outputs.size(); ++o)
      if (const ValueId shared = overwritten_by(node, o))
        last_writer[static_cast<std::size_t>(memory[shared.at()])] = static_cast<std::int32_t>(n);
    return {};
  });
  if (in_nodes) return in_nodes;
  for (const GraphOutput& output : graph.outputs())
    if (const std::int32_t n = overwriter(output.value); n >= 0)
      return fmt::format("output '{}': expected a value that still stands, found '{}', which node {} overwrote",
                         output.name, name_of(graph, output.value), n);
  for (const GraphUpdate& update : graph.updates())
    if (const std::int32_t n = overwriter(update.value); n >= 0)
      return fmt::format("update of '{}': expected a value that still stands, found '{}', which node {} overwrote",
                         name_of(graph, update.input), name_of(graph, update.value), n);
  return {};
}

constexpr GraphRule rules[] = {
    {"names-unique", "every value has a name, and no two have the same", names_unique},
    {"operands-exist", "operands and results of nodes are values of the graph", operands_exist},
    {"outputs-exist", "outputs of the graph have unique names and are values of it", outputs_exist},
    {"orders-usable", "the order of a caller's dimensions names each of them once", orders_usable},
    {"updates-usable", "updates store values of their types in inputs, one in each", updates_usable},
    {"single-producer", "an intermediate value is made by exactly one node, inputs and constants by none",
     single_producer},
    {"defined-before-use", "the order of the nodes is one in which they can run", defined_before_use},
    {"dimensions-usable", "weights have constant dimensions; no dimension is negative or shrinks when its symbol grows",
     dimensions_usable},
    {"ranges-usable", "every symbol has at most one range, from 0 on and not empty", ranges_usable},
    {"super-kernels-known",
     "super-kernels have names of their own and options that exist; nodes are in one of them or in none",
     super_kernels_known},
    {"constants-computable",
     "a constant's data has its type; its expression reads earlier constants and gives its type", constants_computable},
    {"types-inferred", "operands and attributes satisfy the operator, and result types are what it infers",
     types_inferred},
    {"aliases-match", "a result that takes an operand's memory has the operand's type", aliases_match},
    {"constants-never-written", "no result takes a constant's memory", constants_never_written},
    {"no-use-after-overwrite", "nothing reads a value whose memory a later result took", no_use_after_overwrite},
};

}  // namespace

std::span<const GraphRule> graph_rules() { return rules; }

std::optional<std::string> find_violation(const Graph& graph) {
  for (const GraphRule& rule : rules)
    if (const Violation found = rule.violation(graph))
      return fmt::format("graph '{}': rule {}: {}", graph.name, rule.name, *found);
  return {};
}

void verify(const Graph& graph) {
  if (const auto found = find_violation(graph)) throw Error(Status::invalid_argument, *found);
}

}  // namespace cermet
