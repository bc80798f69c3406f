#include "tests/runtime/random/exact_run.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include "op/schema/operator.hpp"
#include "op/schema/reference.hpp"

namespace cermet::test {
namespace {

constexpr int runs = 6;

/// Half a unit in the last place; numbers below the smallest normal one may be lost.
double rounding_of(DType dtype, double value) {
  switch (dtype) {
    case DType::bf16: return std::max(std::ldexp(std::abs(value), -8), std::ldexp(1, -126));
    case DType::f16: return std::max(std::ldexp(std::abs(value), -11), std::ldexp(1, -25));
    case DType::f32: return std::max(std::ldexp(std::abs(value), -24), std::ldexp(1, -126));
    default: return 0;
  }
}

double finite_magnitude(double x) { return std::isfinite(x) ? std::abs(x) : HUGE_VAL; }

}  // namespace

void fill_operand(const std::string& name, const TensorView& tensor) {
  std::uint64_t seed = 14695981039346656037u;
  for (const char c : name) seed = (seed ^ static_cast<unsigned char>(c)) * 1099511628211u;
  std::mt19937_64 random(seed);
  for (std::int64_t i = 0; i < tensor.elements(); ++i) {
    const std::uint64_t drawn = random();
    if (tensor.dtype == DType::boolean) store(tensor, i, static_cast<double>(drawn % 2));
    else if (!is_floating(tensor.dtype)) store(tensor, i, static_cast<double>(drawn % 11) - 5);
    else store(tensor, i, static_cast<double>(drawn % 20001) / 10000 - 1);
  }
}

ExactRun::ExactRun(const Graph& graph, const SymbolValues& symbols, std::uint64_t seed)
    : graph_(graph), values_(graph.values().size()) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> share(0.5, 1);
  const auto wide = [](DType dtype) { return is_floating(dtype) ? DType::f64 : dtype; };
  for (std::size_t v = 0; v < values_.size(); ++v) {
    const Value& value = graph.values()[v];
    const Shape shape = cermet::bind(value.type.dims, symbols);
    values_[v] = OwnedTensor(wide(value.type.dtype), shape);
    if (value.kind == ValueKind::intermediate) continue;
    OwnedTensor given(value.type.dtype, shape);
    if (value.data()) std::ranges::copy(value.data()->bytes(), given.view.as<std::byte>());
    else fill_operand(value.name, given.view);
    for (std::int64_t i = 0; i < given.view.elements(); ++i) store(values_[v].view, i, load(given.view, i));
  }
  for (const Node& node : graph.nodes()) {
    const Problem problem = graph.problem_of(node, symbols);
    const OpDefinition& op = definition(problem);
    std::vector<TensorView> from, to;
    std::vector<std::vector<double>> magnitude;
    for (const ValueId id : node.inputs) from.push_back(id ? values_[id.at()].view : TensorView());
    from.resize(problem.inputs.size());
    for (const ValueId id : node.outputs) {
      to.push_back(values_[id.at()].view);
      magnitude.emplace_back(static_cast<std::size_t>(to.back().elements()));
    }
    op.reference({from, to, problem.attributes, &magnitude});
    const bool rounds = op.operations || node.op == OpKind::cast;
    const double depth = !op.operations ? 0 : op.rounding_depth ? op.rounding_depth(problem) : 8;
    for (std::size_t o = 0; o < to.size(); ++o) {
      const DType dtype = graph.type(node.outputs[o]).dtype;
      if (!is_floating(dtype)) continue;
      for (std::int64_t i = 0; i < to[o].elements(); ++i) {
        double& y = to[o].as<double>()[i];
        largest_ = std::max(largest_, finite_magnitude(y));
        if (seed == 0 || !rounds) continue;
        const double terms = magnitude[o][static_cast<std::size_t>(i)];
        const double error = rounding_of(dtype, y) + depth * std::ldexp(terms > 0 ? terms : std::abs(y), -24);
        y += (random() % 2 ? 1 : -1) * share(random) * error;
      }
    }
  }
}

std::map<std::string, std::vector<double>> ExactRun::outputs() const {
  std::map<std::string, std::vector<double>> results;
  for (const GraphOutput& output : graph_.outputs()) {
    const TensorView& view = values_[output.value.at()].view;
    std::vector<double>& list = results[output.name];
    for (std::int64_t i = 0; i < view.elements(); ++i) list.push_back(load(view, i));
  }
  return results;
}

std::map<std::string, std::vector<double>> allowed_errors(const Graph& graph, const SymbolValues& symbols,
                                                          const std::map<std::string, std::vector<double>>& exact,
                                                          double factor) {
  std::map<std::string, std::vector<double>> allowed;
  for (const auto& [name, elements] : exact) allowed[name].resize(elements.size());
  for (std::uint64_t run = 1; run <= runs; ++run) {
    const auto moved = ExactRun(graph, symbols, run).outputs();
    for (const auto& [name, elements] : exact)
      for (std::size_t i = 0; i < elements.size(); ++i)
        allowed[name][i] = std::max(allowed[name][i], finite_magnitude(moved.at(name)[i] - elements[i]));
  }
  for (auto& [name, list] : allowed) {
    double mean = 0;
    for (const double x : list) mean += std::isfinite(x) ? x / static_cast<double>(list.size()) : 0;
    for (double& x : list) x = factor * (x + mean);
  }
  return allowed;
}

}  // namespace cermet::test
