#include "op/schema/operator.hpp"

namespace cermet {

#define X(name)         \
  namespace name##_op { \
    OpSpec define();    \
  }
#include "op/ops.inc"
#undef X

namespace {

std::vector<OpDefinition> build_table() {
  std::vector<OpDefinition> table;
#define X(op_name) table.push_back({{OpKind::op_name, #op_name}, op_name##_op::define()});
#include "op/ops.inc"
#undef X
  return table;
}

const OperandSpec& input_spec(const OpDefinition& op, std::size_t i) {
  return op.inputs.back().variadic && i >= op.inputs.size() ? op.inputs.back() : op.inputs.at(i);
}

void check_inputs(const OpDefinition& op, const std::vector<std::optional<TensorType>>& inputs) {
  check_input_count(op, inputs.size());
  for (std::size_t i = 0; i < std::max(inputs.size(), op.inputs.size()); ++i) {
    const OperandSpec& spec = input_spec(op, i);
    if (i >= inputs.size() || !inputs[i]) {
      if (!spec.optional)
        fail(Status::invalid_argument, "{}: operand {} ({}): expected {}{}, found nothing", op.name, i, spec.name,
             spec.dtypes.to_string(), spec.shape);
      continue;
    }
    if (!spec.dtypes.contains(inputs[i]->dtype))
      fail(Status::invalid_argument, "{}: operand {} ({}): expected {}, found {}", op.name, i, spec.name,
           spec.dtypes.to_string(), name_of(inputs[i]->dtype));
    require(inputs[i]->rank() <= Shape::max_rank, "{}: operand {} ({}): expected at most {} dimensions, found {}",
            op.name, i, spec.name, Shape::max_rank, inputs[i]->rank());
    for (const Dim& d : inputs[i]->dims)
      if (d.is_constant() && d.constant() < 0)
        fail(Status::invalid_argument, "{}: operand {} ({}): expected non-negative dimensions, found {}", op.name, i,
             spec.name, to_string(inputs[i]->dims));
  }
}

AttributeValue checked_attribute(const OpDefinition& op, const AttributeSpec& spec, AttributeValue value) {
  if (std::holds_alternative<double>(spec.fallback) && std::holds_alternative<std::int64_t>(value))
    value = static_cast<double>(std::get<std::int64_t>(value));
  if (value.index() != spec.fallback.index())
    fail(Status::invalid_argument, "{}: attribute '{}': expected {}, found {} {}", op.name, spec.name,
         type_name(spec.fallback), type_name(value), to_string(value));
  if (spec.choices.empty()) return value;
  const std::string& text = std::get<std::string>(value);
  const bool known = std::find(spec.choices.begin(), spec.choices.end(), text) != spec.choices.end();
  require(known, "{}: attribute '{}': expected one of {}, found \"{}\"", op.name, spec.name,
          fmt::join(spec.choices, ", "), text);
  return value;
}

Attributes resolve_attributes(const OpDefinition& op, const Attributes& given) {
  Attributes resolved;
  for (const AttributeSpec& spec : op.attributes) resolved.set(spec.name, spec.fallback);
  for (const auto& [name, value] : given) {
    const auto spec = std::find_if(op.attributes.begin(), op.attributes.end(),
                                   [&name = name](const AttributeSpec& s) { return s.name == name; });
    require(spec != op.attributes.end(),
            "{}: attribute '{}': expected an attribute of the operator, found none of that name", op.name, name);
    resolved.set(name, checked_attribute(op, *spec, value));
  }
  return resolved;
}

}  // namespace

std::string_view name_of(Mapping mapping) {
  static constexpr std::string_view names[] = {"One-to-One", "One-to-Many", "Many-to-Many",
                                               "Reorganize", "Shuffle",     "barrier"};
  return names[static_cast<std::size_t>(mapping)];
}

const TensorType& Problem::input(std::size_t i) const {
  CERMET_ASSERT(has(i));
  return *inputs[i];
}

std::int64_t Problem::size(std::size_t i, int axis) const {
  const TensorType& type = input(i);
  if (axis < 0) axis += type.rank();
  CERMET_ASSERT(axis >= 0 && axis < type.rank());
  return type.dims[static_cast<std::size_t>(axis)].value(maximum);
}

std::string_view Problem::input_name(std::size_t i) const {
  const auto& specs = definition(*this).inputs;
  return specs[std::min(i, specs.size() - 1)].name;
}

std::vector<double> Problem::numbers() const {
  std::vector<double> list;
  for (const AttributeSpec& spec : definition(*this).attributes) list.push_back(attributes.number(spec.name));
  return list;
}

std::string Problem::to_string() const {
  std::string text = std::string(op->name) + "(";
  for (std::size_t i = 0; i < inputs.size(); ++i) text += (i ? ", " : "") + (inputs[i] ? inputs[i]->to_string() : "-");
  text += ")";
  std::string separator = " {";
  for (const auto& [name, value] : attributes) {
    text += separator + name + " = " + cermet::to_string(value);
    separator = ", ";
  }
  return attributes.size() ? text + "}" : text;
}

std::span<const OpDefinition> all_operators() {
  static const std::vector<OpDefinition> table = build_table();
  return table;
}

const OpDefinition& definition(OpKind kind) { return all_operators()[static_cast<std::size_t>(kind)]; }
const OpDefinition& definition(const Problem& problem) { return static_cast<const OpDefinition&>(*problem.op); }

const OpDefinition* find_operator(std::string_view name) {
  for (const OpDefinition& op : all_operators())
    if (op.name == name) return &op;
  return nullptr;
}

void check_input_count(const OpDefinition& op, std::size_t count) {
  const bool variadic = !op.inputs.empty() && op.inputs.back().variadic;
  require(variadic || count <= op.inputs.size(), "{}: expected at most {} operands, found {}", op.name,
          op.inputs.size(), count);
  require(count <= static_cast<std::size_t>(max_variadic), "{}: expected at most {} operands, found {}", op.name,
          max_variadic, count);
}

Problem make_problem(const OpDefinition& op, std::vector<std::optional<TensorType>> inputs,
                     const Attributes& attributes) {
  check_inputs(op, inputs);
  Problem problem;
  problem.op = &op;
  problem.inputs = std::move(inputs);
  if (problem.inputs.size() < op.inputs.size()) problem.inputs.resize(op.inputs.size());
  problem.attributes = resolve_attributes(op, attributes);
  problem.outputs = op.infer(problem);
  return problem;
}

// Not TensorType::bytes(): they may pass 2^63.
double bytes_of(const TensorType& type, const SymbolValues& maximum) {
  double bytes = static_cast<double>(size_of(type.dtype));
  for (const Dim& d : type.dims) bytes *= static_cast<double>(d.value(maximum));
  return bytes;
}

int dense_dims_of(const Problem& problem) {
  const auto& dense_dims = definition(problem).dense_dims;
  return dense_dims ? dense_dims(problem) : 1;
}

Cost cost_of(const Problem& problem) {
  Cost cost;
  const OpDefinition& op = definition(problem);
  if (op.operations) cost.operations = op.operations(problem);
  if (op.bytes) {
    cost.bytes = op.bytes(problem);
    return cost;
  }
  for (const auto& input : problem.inputs)
    if (input) cost.bytes += bytes_of(*input, problem.maximum);
  for (const TensorType& output : problem.outputs) cost.bytes += bytes_of(output, problem.maximum);
  return cost;
}

}  // namespace cermet
