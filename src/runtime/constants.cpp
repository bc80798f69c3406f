#include "runtime/constants.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <memory>

#include "base/buffer.hpp"
#include "base/text.hpp"
#include "io/digest.hpp"
#include "op/schema/operator.hpp"
#include "op/schema/reference.hpp"
#include "select/bound_op.hpp"
#include "select/select.hpp"

namespace cermet {
namespace {

/// On the CPU, whatever device the graph is for: weights are packed there.
void compute(Problem problem, const std::vector<TensorView>& inputs, const std::vector<TensorView>& outputs,
             ThreadPool& pool) {
  if (Choice choice = explain_selection(problem, {.tuned = false}).choice; choice.kernel)
    return BoundOp(std::move(problem), std::move(choice), pool).run(inputs, outputs);
  definition(problem).reference({inputs, outputs, problem.attributes});
}

class Loader {
 public:
  Loader(const Graph& graph, const LoadWeight& load, Scratch& scratch, ThreadPool& pool)
      : graph_(graph), load_(load), scratch_(scratch), pool_(pool) {}

  void fill(ValueId id, const TensorView& destination) const {
    const Value& value = graph_.value(id);
    if (value.expression()) return evaluate(value, *value.expression(), destination);
    if (!value.data()) return load_(value.name, -1, destination);
    std::ranges::copy(value.data()->bytes(), destination.as<std::byte>());
  }

 private:
  void evaluate(const Value& value, const ConstantExpression& expression, const TensorView& destination) const {
    const std::int64_t* axis = axis_of(expression);
    if (expression.op == OpKind::concat && (!axis || *axis == 0)) return stack(value, expression, destination);
    std::vector<Scratch::Tensor> memory;
    std::vector<TensorView> inputs, outputs;
    Problem problem = problem_of(expression);
    const auto allocate = [&](const TensorType& type) {
      return memory.emplace_back(scratch_, type.dtype, cermet::bind(type.dims, {})).view;
    };
    for (std::size_t i = 0; i < problem.inputs.size(); ++i) {
      const bool given = i < expression.inputs.size() && expression.inputs[i];
      inputs.push_back(given ? allocate(graph_.type(expression.inputs[i])) : TensorView());
      if (given) fill_operand(value, expression.inputs[i], inputs.back());
    }
    for (std::size_t o = 0; o < problem.outputs.size(); ++o)
      outputs.push_back(static_cast<std::int32_t>(o) == expression.output ? destination : allocate(problem.outputs[o]));
    compute(std::move(problem), inputs, outputs, pool_);
  }

  /// Rows of one operand after the other: they are loaded where they belong.
  void stack(const Value& value, const ConstantExpression& expression, const TensorView& destination) const {
    std::byte* at = destination.as<std::byte>();
    for (const ValueId id : expression.inputs) {
      const TensorType& type = graph_.type(id);
      const TensorView piece(at, type.dtype, cermet::bind(type.dims, {}));
      fill_operand(value, id, piece);
      at += dense_bytes(piece.dtype, piece.shape);
    }
  }

  void fill_operand(const Value& value, ValueId operand, const TensorView& destination) const try {
    fill(operand, destination);
  } catch (const Error& error) {
    throw Error(error.status(),
                fmt::format("constant '{}': operand '{}': {}", value.name, graph_.value(operand).name, error.what()));
  }

  static const std::int64_t* axis_of(const ConstantExpression& expression) {
    const AttributeValue* axis = expression.attributes.find("axis");
    return axis ? std::get_if<std::int64_t>(axis) : nullptr;
  }

  Problem problem_of(const ConstantExpression& expression) const {
    std::vector<std::optional<TensorType>> types;
    for (const ValueId id : expression.inputs) types.push_back(id ? std::optional(graph_.type(id)) : std::nullopt);
    return make_problem(definition(expression.op), std::move(types), expression.attributes);
  }

  const Graph& graph_;
  const LoadWeight& load_;
  Scratch& scratch_;
  ThreadPool& pool_;
};

}  // namespace

std::string constant_key(const Graph& graph, ValueId id) {
  const Value& value = graph.value(id);
  if (value.data()) return fmt::format("= {} {}", value.type.to_string(), digest(value.data()->bytes()));
  const ConstantExpression* expression = value.expression();
  if (!expression) return value.name;
  const auto operand = [&](ValueId input) {
    if (!input) return std::string("-");
    const Value& from = graph.value(input);
    return from.data() || from.expression() ? constant_key(graph, input)
                                            : fmt::format("{} {}", from.type.to_string(), escape(from.name));
  };
  std::string key = fmt::format("= {}[{}](", definition(expression->op).name, expression->output);
  for (const ValueId input : expression->inputs) key += fmt::format("{}, ", operand(input));
  for (const auto& [name, attribute] : expression->attributes)
    key += fmt::format("{} = {}, ", name, to_string(attribute));
  return key + ")";
}

std::vector<std::string> loaded_names(const Graph& graph, ValueId id) {
  const Value& value = graph.value(id);
  if (value.data()) return {};
  if (!value.expression()) return {value.name};
  std::vector<std::string> names;
  for (const ValueId input : value.expression()->inputs)
    if (input) std::ranges::copy(loaded_names(graph, input), std::back_inserter(names));
  return names;
}

LoadWeight constant_loader(const Graph& graph, ValueId id, const LoadWeight& load, Scratch& scratch, ThreadPool& pool) {
  const Value& value = graph.value(id);
  if (!value.data() && !value.expression()) return load;
  const auto whole = std::make_shared<OwnedTensor>();  // of a stack that is asked for matrix by matrix
  return [&graph, id, &load, &scratch, &pool, whole](const std::string&, std::int64_t slice,
                                                     const TensorView& destination) {
    const Loader loader(graph, load, scratch, pool);
    if (slice < 0) return loader.fill(id, destination);
    const TensorType& type = graph.type(id);
    if (!whole->view.present) {
      *whole = OwnedTensor(type.dtype, cermet::bind(type.dims, {}));
      loader.fill(id, whole->view);
    }
    const std::int64_t bytes = dense_bytes(destination.dtype, destination.shape);
    std::memcpy(destination.data, whole->view.as<std::byte>() + slice * bytes, static_cast<std::size_t>(bytes));
  };
}

}  // namespace cermet
