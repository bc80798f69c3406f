#include "cli/op_call.hpp"

#include <algorithm>

#include "api/schema.hpp"
#include "base/text.hpp"
#include "kernel/cpu/kernels.hpp"
#include "op/schema/operator.hpp"
#include "op/schema/region_text.hpp"
#include "op/schema/type_text.hpp"

namespace cermet::cli {
namespace {

/// Words separated by spaces that stand outside brackets and quotes.
std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words(1);
  int depth = 0;
  bool quoted_part = false;
  for (const char c : text) {
    if (c == '"') quoted_part = !quoted_part;
    if (!quoted_part) depth += c == '[' ? 1 : c == ']' ? -1 : 0;
    if (c == ' ' && depth <= 0 && !quoted_part) words.emplace_back();
    else words.back() += c;
  }
  std::erase(words, "");
  return words;
}

std::string schema_name(const OpDefinition& op, std::size_t i) {
  if (i + 1 < op.inputs.size() || (i < op.inputs.size() && !op.inputs[i].variadic))
    return std::string(op.inputs[i].name);
  return fmt::format("{}.{}", op.inputs.back().name, i + 1 - op.inputs.size());
}

class CallParser {
 public:
  explicit CallParser(const OpDefinition& op) : op_(op) {}

  void word(const std::string& text) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos) return operand(next_++, text);
    const std::string name = text.substr(0, equals), value = text.substr(equals + 1);
    if (const auto input = find_input(name)) return operand(*input, value);
    const auto spec = std::find_if(op_.attributes.begin(), op_.attributes.end(),
                                   [&](const AttributeSpec& s) { return s.name == name; });
    if (spec == op_.attributes.end())
      fail(Status::invalid_argument, "{}: expected an operand or attribute ({}), found {}", op_.name,
           fmt::join(names(), ", "), quote(name));
    attributes_.set(name, std::holds_alternative<std::string>(spec->fallback) && !value.starts_with('"')
                              ? AttributeValue(value)
                              : parse_attribute_value(value));
  }

  Problem problem() { return make_problem(op_, std::move(types_), attributes_); }

 private:
  /// Position of the operand of this name; another one each time for a variadic name.
  std::optional<std::size_t> find_input(std::string_view name) {
    for (std::size_t i = 0; i < op_.inputs.size(); ++i)
      if (op_.inputs[i].name == name) return op_.inputs[i].variadic ? std::max(i, types_.size()) : i;
    return std::nullopt;
  }

  void operand(std::size_t i, const std::string& type) {
    const bool variadic = !op_.inputs.empty() && op_.inputs.back().variadic;
    require(variadic || i < op_.inputs.size(), "{}: expected at most {} operands, found also {}", op_.name,
            op_.inputs.size(), quote(type));
    if (types_.size() <= i) types_.resize(i + 1);
    require(!types_[i], "{}: operand {} ({}): expected it once, found it twice", op_.name, i, schema_name(op_, i));
    if (type != "-") types_[i] = parse_tensor_type(type);
    next_ = std::max(next_, i + 1);
  }

  std::vector<std::string_view> names() const {
    std::vector<std::string_view> list;
    for (const OperandSpec& spec : op_.inputs) list.push_back(spec.name);
    for (const AttributeSpec& spec : op_.attributes) list.push_back(spec.name);
    return list;
  }

  const OpDefinition& op_;
  std::vector<std::optional<TensorType>> types_;
  Attributes attributes_;
  std::size_t next_ = 0;
};

void check_sizes(const std::vector<std::optional<TensorType>>& types, SymbolValues& maximum,
                 std::int64_t symbol_maximum) {
  for (const auto& type : types) {
    if (!type) continue;
    for (const Dim& dim : type->dims)
      for (const Symbol& symbol : dim.symbols()) maximum.set(symbol, symbol_maximum);
    Dim bytes = byte_size(type->dtype);
    for (const Dim& dim : type->dims) bytes = bytes * dim.value(maximum);  // throws where the size overflows
  }
}

}  // namespace

Problem parse_problem(const OpDefinition& op, std::string_view text, std::int64_t symbol_maximum) {
  CallParser parser(op);
  for (const std::string& word : words_of(text)) parser.word(word);
  Problem problem = parser.problem();
  check_sizes(problem.inputs, problem.maximum, symbol_maximum);
  check_sizes({problem.outputs.begin(), problem.outputs.end()}, problem.maximum, symbol_maximum);
  return problem;
}

Region parse_region_call(std::string_view region_or_name, std::string_view call, std::int64_t symbol_maximum) {
  if (!is_region_text(region_or_name))
    return parse_problem(api::operator_named(std::string(region_or_name)), call, symbol_maximum);
  require(call.empty(), "{}: expected no operands beside a region, which names its own, found {}",
          quote(region_or_name), quote(call));
  Region region = parse_region(region_or_name);
  SymbolValues maximum;
  for (const RegionNode& node : region.nodes) {
    check_sizes(node.problem.inputs, maximum, symbol_maximum);
    check_sizes({node.problem.outputs.begin(), node.problem.outputs.end()}, maximum, symbol_maximum);
  }
  region.set_maximum(maximum);
  return region;
}

namespace {

/// In every node that reads it, because kernels ask the problems.
void mark(Region& region, std::size_t operand) {
  for (std::size_t n = 0; n < region.nodes.size(); ++n)
    for (std::size_t i = 0; i < std::min<std::size_t>(region.nodes[n].inputs.size(), 64); ++i)
      if (region.operand_of(n, i) == operand) region.nodes[n].problem.constant_inputs |= std::uint64_t{1} << i;
}

bool is_prepacked(const Problem& problem, std::size_t i) {
  Problem all = problem;
  all.constant_inputs = ~std::uint64_t{0};
  all.target = nullptr;
  return std::ranges::any_of(cpu::kernels_of(problem.op->kind), [&](const Kernel* kernel) {
    return !kernel->declines(all) && kernel->weight_layout(all, i) != nullptr;
  });
}

}  // namespace

void mark_constants(Region& region, std::string_view names) {
  for (RegionNode& node : region.nodes) node.problem.constant_inputs = 0;
  if (names == "none") return;
  if (names.empty()) {
    for (std::size_t i = 0; i < region.operands.size(); ++i) {
      const RegionPlace& place = region.operands[i];
      if (region.has(i) && place.index < 64 &&
          is_prepacked(region.nodes[static_cast<std::size_t>(place.node)].problem,
                       static_cast<std::size_t>(place.index)))
        mark(region, i);
    }
    return;
  }
  while (!names.empty()) {
    const std::string_view name = names.substr(0, names.find(','));
    names.remove_prefix(std::min(names.size(), name.size() + 1));
    std::size_t found = 0;
    while (found < region.operands.size() && operand_name(region, found) != name) ++found;
    require(found < region.operands.size(), "{}: constant operands: expected an operand's name, found {}",
            region.operators(), quote(name));
    mark(region, found);
  }
}

std::string operand_name(const Region& region, std::size_t i) {
  return region.is_single() ? schema_name(definition(region.problem()), i) : fmt::format("${}", i);
}

std::string result_name(const Region& region, std::size_t i) {
  const OpDefinition& op = definition(region.problem());
  if (region.is_single()) return std::string(op.outputs[std::min(i, op.outputs.size() - 1)].name);
  return fmt::format("n{}.{}", region.results[i].node, region.results[i].index);
}

std::vector<std::string> constant_names(const Region& region) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < region.operands.size(); ++i)
    if (region.has(i) && region.is_constant(i)) names.push_back(operand_name(region, i));
  return names;
}

}  // namespace cermet::cli
