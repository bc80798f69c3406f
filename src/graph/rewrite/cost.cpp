#include "graph/rewrite/cost.hpp"

#include <algorithm>
#include <cmath>

#include "op/schema/operator.hpp"

namespace cermet {
namespace {

constexpr double bytes_of_node = 512, bytes_of_view = 64, bytes_of_operation = 0.25;
constexpr std::int64_t most_typical = 1024;

/// How many additions an element of an elementwise operator takes, roughly.
double additions(OpKind op) {
  switch (op) {
    case OpKind::sub: return 1.25;
    case OpKind::div:
    case OpKind::reciprocal:
    case OpKind::sqrt: return 4;
    case OpKind::rsqrt: return 5;
    case OpKind::mod:
    case OpKind::fmod: return 6;
    case OpKind::exp:
    case OpKind::log:
    case OpKind::sigmoid:
    case OpKind::sin:
    case OpKind::cos:
    case OpKind::erf:
    case OpKind::tanh: return 8;
    case OpKind::softplus:
    case OpKind::silu:
    case OpKind::gelu:
    case OpKind::gelu_quick:
    case OpKind::swish:
    case OpKind::elu:
    case OpKind::selu:
    case OpKind::celu: return 10;
    case OpKind::tan:
    case OpKind::asin:
    case OpKind::acos:
    case OpKind::atan:
    case OpKind::sinh:
    case OpKind::cosh:
    case OpKind::asinh:
    case OpKind::acosh:
    case OpKind::atanh:
    case OpKind::gelu_tanh: return 12;
    case OpKind::mish: return 18;
    case OpKind::pow: return 24;
    default: return 1;
  }
}

double rounded_up(double work) { return std::ceil(work * 64) / 64; }

void set_typical(const Dims& dims, const SymbolRanges& ranges, SymbolValues& values) {
  for (const Dim& dim : dims)
    if (!dim.is_constant())
      for (const Symbol& symbol : dim.symbols())
        values.set(symbol, std::min(range_of(ranges, symbol).greatest, most_typical));
}

}  // namespace

double work_of(const Problem& problem) {
  const OpDefinition& op = definition(problem);
  if (op.is_view) return bytes_of_view;
  const Cost cost = cost_of(problem);
  return rounded_up(bytes_of_node + cost.bytes + bytes_of_operation * additions(problem.op->kind) * cost.operations);
}

double work_of(const Graph& graph) {
  const SymbolValues sizes = typical_sizes(graph);
  double work = 0;
  for (const Node& node : graph.nodes()) work += work_of(graph.problem_of(node, sizes));
  return work;
}

SymbolValues typical_sizes(const Graph& graph) {
  SymbolValues values;
  for (const Value& value : graph.values())
    if (value.kind != ValueKind::intermediate) set_typical(value.type.dims, graph.ranges(), values);
  return values;
}

}  // namespace cermet
