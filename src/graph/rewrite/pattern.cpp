// The text of patterns.
#include "graph/rewrite/pattern.hpp"

#include <algorithm>
#include <charconv>

#include "op/schema/attribute_text.hpp"
#include "op/schema/operator.hpp"

namespace cermet {
namespace {

class PatternReader {
 public:
  PatternReader(std::string_view text, const Pattern* before) : reader_("pattern", text) {
    if (before) pattern_.names = before->names;
  }

  Pattern read() {
    do statement();
    while (reader_.take(';'));
    reader_.finish();
    pattern_.producers.assign(pattern_.names.size(), -1);
    for (std::size_t p = 0; p < pattern_.nodes.size(); ++p)
      for (const PatternName& result : pattern_.nodes[p].results)
        if (result.slot >= 0) pattern_.producers[static_cast<std::size_t>(result.slot)] = static_cast<int>(p);
    return std::move(pattern_);
  }

 private:
  /// "a, b = op(..)", "op(..)" whose result is y, or "x".
  void statement() {
    reader_.skip_spaces();
    const std::size_t begin = reader_.position();
    if (starts_call() || !names_results()) {
      reader_.back_to(begin);
      if (starts_call()) {
        node({named("y")});
        return;
      }
      pattern_.roots.push_back(name());
      return;
    }
    reader_.back_to(begin);
    std::vector<PatternName> results;
    do results.push_back(name());
    while (reader_.take(','));
    reader_.need('=');
    node(std::move(results));
  }

  bool starts_call() {
    const std::size_t begin = (reader_.skip_spaces(), reader_.position());
    bool is_call = false;
    if (is_letter(reader_.peek())) {
      reader_.name("a name");
      is_call = reader_.peek() == '(';
    }
    reader_.back_to(begin);
    return is_call;
  }

  bool names_results() {
    const std::string_view rest = reader_.rest();
    return rest.substr(0, rest.find(';')).find('=') != std::string_view::npos;
  }

  PatternName named(std::string_view text) {
    int slot = pattern_.slot(text);
    if (slot < 0) {
      slot = static_cast<int>(pattern_.names.size());
      pattern_.names.emplace_back(text);
    }
    PatternName made;
    made.slot = slot;
    return made;
  }

  PatternName name() {
    PatternName made;
    const char first = reader_.peek();
    if (first == '[') {
      reader_.need('[');
      made.kind = PatternName::Kind::expression;
      made.expression = ScalarExpression::read(reader_, [this](std::string_view text) { return pattern_.slot(text); });
      reader_.need(']');
      return made;
    }
    if (is_digit(first) || first == '-') return number();
    made = named(reader_.name("a value's name"));
    if (reader_.take('?')) made.optional = true;
    else if (reader_.take('#')) made.kind = PatternName::Kind::scalar;
    else if (reader_.take('@')) made.kind = PatternName::Kind::constant;
    if (made.kind == PatternName::Kind::constant && reader_.take('?')) made.optional = true;
    return made;
  }

  /// A number, or "-" alone.
  PatternName number() {
    PatternName made;
    const std::string_view rest = reader_.rest();
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), made.number);
    made.kind = error == std::errc() ? PatternName::Kind::number : PatternName::Kind::absent;
    reader_.back_to(reader_.position() + (error == std::errc() ? static_cast<std::size_t>(end - rest.data()) : 1));
    return made;
  }

  void node(std::vector<PatternName> results) {
    const TextReader::Level level(reader_);
    PatternNode made;
    made.results = std::move(results);
    reader_.skip_spaces();
    const std::size_t begin = reader_.position();
    const OpDefinition* op = find_operator(reader_.name("an operator"));
    if (!op) {
      reader_.back_to(begin);
      reader_.expected("an operator");
    }
    made.op = op->kind;
    reader_.need('(');
    do {
      if (!starts_call()) {
        made.operands.push_back(name());
        continue;
      }
      made.operands.push_back(named(fmt::format(".{}", pattern_.names.size())));
      node({made.operands.back()});
    } while (reader_.take(','));
    reader_.need(')');
    for (const PatternName& operand : made.operands)
      for (const PatternName& result : made.results)
        if (operand.slot >= 0 && operand.slot == result.slot)
          reader_.expected("operands that are not the result (the last one's name is y unless the text says)");
    if (reader_.peek() == '{') made.attributes = read_attributes(reader_);
    pattern_.nodes.push_back(std::move(made));
  }

  TextReader reader_;
  Pattern pattern_;
};

}  // namespace

Pattern Pattern::parse(std::string_view text, const Pattern* before) { return PatternReader(text, before).read(); }

int Pattern::slot(std::string_view name) const {
  const auto found = std::ranges::find(names, name);
  return found == names.end() ? -1 : static_cast<int>(found - names.begin());
}

ValueId Match::at(std::string_view name) const {
  const int slot = pattern->slot(name);
  return slot < 0 ? ValueId{} : values[static_cast<std::size_t>(slot)];
}

double Match::scalar(std::string_view name) const {
  const int slot = pattern->slot(name);
  CERMET_ASSERT(slot >= 0);
  return scalars[static_cast<std::size_t>(slot)];
}

Attributes Match::attributes(std::size_t node) const { return problem_of(*editor, nodes.at(node)).attributes; }

Problem problem_of(const GraphEditor& editor, NodeId n) {
  const Node& node = editor.node(n);
  std::vector<std::optional<TensorType>> types;
  for (const ValueId id : node.inputs) types.push_back(id ? std::optional(editor.value(id).type) : std::nullopt);
  return make_problem(definition(node.op), std::move(types), node.attributes);
}

}  // namespace cermet
