#include "op/schema/region_text.hpp"

#include "op/schema/attribute_text.hpp"
#include "op/schema/operator.hpp"
#include "op/schema/type_text.hpp"

namespace cermet {
namespace {

constexpr std::size_t most_nodes = 1024;  // checking a region takes time in proportion to their square

const OpDefinition& operator_of(TextReader& reader) {
  const std::size_t begin = (reader.skip_spaces(), reader.position());
  if (const OpDefinition* op = find_operator(reader.name("an operator's name"))) return *op;
  reader.back_to(begin);
  reader.expected("an operator's name, as `cermet ops` lists them");
}

class RegionReader {
 public:
  explicit RegionReader(std::string_view text) : reader_("region", text) {}

  Region run() {
    reader_.need('{');
    do node();
    while (reader_.take(';'));
    reader_.need('}');
    word("anchor");
    region_.anchor = static_cast<std::int32_t>(node_before());
    arrow();
    do region_.results.push_back(result());
    while (reader_.take(','));
    reader_.finish();
    if (const auto fault = find_fault(region_)) fail(Status::invalid_argument, "region: {}", *fault);
    return std::move(region_);
  }

 private:
  void word(std::string_view wanted) {
    const std::size_t begin = (reader_.skip_spaces(), reader_.position());
    if (is_letter(reader_.peek()) && reader_.name(wanted) == wanted) return;
    reader_.back_to(begin);
    reader_.expected(fmt::format("'{}'", wanted));
  }
  void arrow() {
    reader_.need('-');
    if (!reader_.rest().starts_with('>')) reader_.expected("'>'");
    reader_.back_to(reader_.position() + 1);
  }

  /// "n0 = linear(...) {...}", the next node.
  void node() {
    const std::size_t n = region_.nodes.size();
    if (n == most_nodes) reader_.expected(fmt::format("at most {} nodes", most_nodes));
    word(fmt::format("n{}", n));
    reader_.need('=');
    const OpDefinition& op = operator_of(reader_);
    std::vector<RegionInput> inputs;
    std::vector<std::optional<TensorType>> types;
    reader_.need('(');
    if (!reader_.take(')')) {
      do {
        inputs.push_back(input(inputs.size()));
        types.push_back(type_);
      } while (reader_.take(','));
      reader_.need(')');
    }
    const Attributes attributes = read_attributes(reader_);
    try {
      Problem problem = make_problem(op, std::move(types), attributes);
      inputs.resize(problem.inputs.size());
      region_.nodes.push_back({std::move(problem), std::move(inputs)});
    } catch (const Error& error) {
      throw Error(error.status(), fmt::format("region, n{}: {}", n, error.what()));
    }
  }

  /// "-", "$0: f32[1, 64]", "strict n0.1"; its type is in type_.
  RegionInput input(std::size_t place) {
    type_.reset();
    if (reader_.take('-')) return {};
    if (reader_.take('$')) return outside(place);
    const std::size_t begin = (reader_.skip_spaces(), reader_.position());
    const std::string_view contract = reader_.name("an operand: '-', '$0: TYPE', 'strict n0' or 'fast n0'");
    if (contract != name_of(Rounding::strict) && contract != name_of(Rounding::fast)) {
      reader_.back_to(begin);
      reader_.expected("an operand: '-', '$0: TYPE', 'strict n0' or 'fast n0'");
    }
    const RegionPlace from = result();
    type_ = region_.nodes[static_cast<std::size_t>(from.node)].problem.outputs[static_cast<std::size_t>(from.index)];
    return RegionInput::inside(static_cast<std::size_t>(from.node), static_cast<std::size_t>(from.index),
                               contract == name_of(Rounding::strict) ? Rounding::strict : Rounding::fast);
  }

  RegionInput outside(std::size_t place) {
    const std::size_t begin = reader_.position();
    const std::int64_t number = reader_.integer("the number of an operand");
    const auto count = static_cast<std::int64_t>(region_.operands.size());
    if (number < 0 || number > count) {
      reader_.back_to(begin);
      reader_.expected(count == 0 ? "0, the first operand"
                                  : fmt::format("an operand from 0 to {}, or {}, the next", count - 1, count));
    }
    reader_.need(':');
    const std::size_t type_begin = (reader_.skip_spaces(), reader_.position());
    type_ = read_tensor_type(reader_);
    if (number == count) {
      region_.operands.push_back({static_cast<std::int32_t>(region_.nodes.size()), static_cast<std::int32_t>(place)});
      operand_types_.push_back(*type_);
    } else if (const TensorType& first = operand_types_[static_cast<std::size_t>(number)]; first != *type_) {
      reader_.back_to(type_begin);
      reader_.expected(fmt::format("{}, the type of ${}", first.to_string(), number));
    }
    return RegionInput::outside(static_cast<std::size_t>(number));
  }

  /// "n0": a node that was read.
  std::size_t node_before() {
    const std::size_t begin = (reader_.skip_spaces(), reader_.position());
    const std::string_view name = reader_.name("a node, such as n0");
    std::size_t n = 0;
    const auto [end, error] = std::from_chars(name.data() + 1, name.data() + name.size(), n);
    if (name.starts_with('n') && error == std::errc() && end == name.data() + name.size() && n < region_.nodes.size())
      return n;
    reader_.back_to(begin);
    reader_.expected(region_.nodes.empty()       ? "an operand from outside: there is no node before this one"
                     : region_.nodes.size() == 1 ? "n0, the only node before"
                                                 : fmt::format("a node from n0 to n{}", region_.nodes.size() - 1));
  }

  /// "n0", or "n0.1" of a node with several results.
  RegionPlace result() {
    const std::size_t n = node_before(), count = region_.nodes[n].problem.outputs.size();
    if (count == 1) return {static_cast<std::int32_t>(n), 0};
    reader_.need('.');
    const std::size_t begin = reader_.position();
    const std::int64_t output = reader_.integer("the number of a result");
    if (output >= 0 && output < static_cast<std::int64_t>(count))
      return {static_cast<std::int32_t>(n), static_cast<std::int32_t>(output)};
    reader_.back_to(begin);
    reader_.expected(fmt::format("a result from 0 to {}", count - 1));
  }

  TextReader reader_;
  Region region_;
  std::optional<TensorType> type_;
  std::vector<TensorType> operand_types_;
};

}  // namespace

Region parse_region(std::string_view text) {
  TextReader reader("region", text);
  if (reader.peek() == '{') return RegionReader(text).run();
  OperatorCall call = parse_call(text);
  const OpDefinition* op = find_operator(call.name);
  require(op != nullptr, "region {}: expected an operator, as `cermet ops` lists them, found {}", quote(text),
          quote(call.name));
  return make_problem(*op, std::move(call.inputs), call.attributes);
}

bool is_region_text(std::string_view text) { return text.find_first_of("{(") != std::string_view::npos; }

}  // namespace cermet
