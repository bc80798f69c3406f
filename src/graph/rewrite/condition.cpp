#include "graph/rewrite/condition.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "graph/rewrite/value_range.hpp"
#include "op/schema/text_reader.hpp"

namespace cermet {
namespace {

constexpr std::string_view comparisons[] = {">=", "<=", "==", "!=", ">", "<"};

bool compares(std::string_view comparison, double a, double b) {
  if (comparison == ">=") return a >= b;
  if (comparison == "<=") return a <= b;
  if (comparison == "==") return a == b;
  if (comparison == "!=") return a != b;
  return comparison == ">" ? a > b : a < b;
}

/// Of all elements in the range.
bool range_compares(std::string_view comparison, const ValueRange& range, double number) {
  if (comparison == ">=" || comparison == ">") return compares(comparison, range.low, number);
  if (comparison == "<=" || comparison == "<") return compares(comparison, range.high, number);
  return comparison == "!=" && (range.low > number || range.high < number);
}

bool is_own(const Match& match, std::string_view name) {
  const ValueId id = match.at(name);
  return id && match.editor->uses(id).size() == 1 && !match.editor->is_output(id);
}

}  // namespace

Condition Condition::parse(std::string_view text, const Pattern& before) {
  Condition condition;
  for (const PatternNode& node : before.nodes)
    for (const PatternName& operand : node.operands)
      if (operand.kind == PatternName::Kind::scalar) condition.captured_.push_back(operand.slot);
  const auto known = [&](std::string_view name) {
    require(before.slot(name) >= 0, "condition \"{}\": expected names of the pattern, found '{}'", text, name);
  };
  for (TextReader reader("condition", text); reader.peek() != '\0'; reader.take(';')) {
    if (reader.take('(')) {
      reader.run([](char c) { return c != ')'; });
      reader.need(')');
      continue;
    }
    Test test;
    test.word = reader.name("a condition");
    if (test.word == "number" || test.word == "integer" || test.word == "any") {
      condition.types_ = test.word == "number" ? Types::number : test.word == "integer" ? Types::integer : Types::any;
      continue;
    }
    reader.skip_spaces();
    const auto* comparison =
        std::ranges::find_if(comparisons, [&](std::string_view sign) { return reader.rest().starts_with(sign); });
    if (comparison != std::end(comparisons)) {
      test.left = std::exchange(test.word, std::string(*comparison));
      reader.back_to(reader.position() + comparison->size());
      known(test.left);
      if (is_letter(reader.peek())) {
        test.right = reader.name("a name");
        known(test.right);
      } else {
        const std::string_view rest = reader.rest();
        const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), test.number);
        if (error != std::errc()) reader.expected("a number");
        reader.back_to(reader.position() + static_cast<std::size_t>(end - rest.data()));
      }
    } else {
      constexpr std::string_view words[] = {"finite", "not_nan", "power_of_two", "integral", "same", "own"};
      if (std::ranges::find(words, test.word) == std::end(words)) reader.expected("a condition that there is");
      test.left = reader.name("a name");
      known(test.left);
      if (test.word == "same") {
        test.right = reader.name("a name");
        known(test.right);
      }
    }
    test.is_scalar = condition.is_captured(before.slot(test.left));
    condition.tests_.push_back(std::move(test));
  }
  return condition;
}

bool Condition::is_captured(int slot) const { return std::ranges::find(captured_, slot) != captured_.end(); }

bool Condition::holds(const Match& match) const {
  return std::ranges::all_of(tests_, [&](const Test& test) { return holds(test, match); });
}

bool Condition::holds(const Test& test, const Match& match) const {
  if (test.word == "same") return match.type(test.left) == match.type(test.right);
  if (test.word == "own") return !match.has(test.left) || is_own(match, test.left);
  if (test.is_scalar) {
    const double value = match.scalar(test.left);
    if (test.word == "finite") return std::isfinite(value);
    if (test.word == "not_nan") return !std::isnan(value);
    if (test.word == "integral") return std::isfinite(value) && value == std::floor(value);
    int exponent = 0;
    if (test.word == "power_of_two")
      return std::isfinite(value) && std::abs(std::frexp(value, &exponent)) == 0.5 && std::abs(exponent) < 60;
    return compares(test.word, value, test.right.empty() ? test.number : match.scalar(test.right));
  }
  const ValueRange range = range_of(*match.editor, match.at(test.left));
  if (test.word == "finite") return range.is_finite();
  if (test.word == "not_nan") return !range.may_be_nan;
  return range_compares(test.word, range, test.right.empty() ? test.number : match.scalar(test.right));
}

}  // namespace cermet
