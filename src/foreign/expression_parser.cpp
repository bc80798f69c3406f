#include "foreign/expression_parser.hpp"

#include <algorithm>
#include <charconv>

#include "base/text.hpp"
#include "foreign/characters.hpp"

namespace cermet::foreign {
namespace {

constexpr int most_nesting = 24;

}  // namespace

ExpressionParser::ExpressionParser(std::string_view text, std::string_view source, const Expression::Lookup& lookup)
    : text_(text), rest_(text), source_(source), lookup_(lookup) {}

Expression ExpressionParser::parse() {
  if (text_.size() > Expression::most_characters)
    fail(Status::invalid_file, "{}: expected at most {} characters, found {}", source_, Expression::most_characters,
         text_.size());
  parse_binary(0);
  skip_spaces();
  if (!rest_.empty()) refuse("an operator or the end");
  made_.text_ = text_;
  return std::move(made_);
}

const ExpressionParser::Operator* ExpressionParser::find_operator(std::string_view rest) {
  // Longer ones first, of those that begin alike.
  static constexpr Operator operators[] = {
      {"||", 1, Code::logical_or},  {"&&", 2, Code::logical_and},     {"==", 3, Code::equal},
      {"!=", 3, Code::equal, true}, {"<=", 4, Code::less_equal},      {">=", 4, Code::less, true},
      {"<", 4, Code::less},         {">", 4, Code::less_equal, true}, {"+", 5, Code::add},
      {"-", 5, Code::subtract},     {"*", 6, Code::multiply},         {"/", 6, Code::divide},
      {"%", 6, Code::remainder},
  };
  const auto* const found =
      std::ranges::find_if(operators, [&](const Operator& o) { return rest.starts_with(o.text); });
  return found == std::end(operators) ? nullptr : found;
}

void ExpressionParser::parse_binary(int least) {
  if (++nesting_ > most_nesting) refuse("less nesting");
  parse_unary();
  for (;;) {
    skip_spaces();
    const Operator* const found = find_operator(rest_);
    if (!found || found->binds < least) break;
    rest_.remove_prefix(found->text.size());
    parse_binary(found->binds + 1);
    emit(found->code);
    if (found->negated) emit(Code::logical_not);
  }
  --nesting_;
}

void ExpressionParser::parse_unary() {
  skip_spaces();
  if (++nesting_ > most_nesting) refuse("less nesting");
  if (take("-")) {
    parse_unary();
    emit(Code::negate);
  } else if (!rest_.starts_with("!=") && take("!")) {
    parse_unary();
    emit(Code::logical_not);
  } else if (take("(")) {
    parse_binary(0);
    if (!take(")")) refuse("')'");
  } else if (!rest_.empty() && is_digit(rest_.front())) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc()) refuse("an integer below 2^63");
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    if (!rest_.empty() && (is_letter(rest_.front()) || rest_.front() == '.')) refuse("an operator after an integer");
    emit(Code::constant, value);
  } else {
    parse_name();
  }
  --nesting_;
}

std::string_view ExpressionParser::word() {
  skip_spaces();
  std::size_t size = 0;
  while (size < rest_.size() && (is_letter(rest_[size]) || is_digit(rest_[size]))) ++size;
  const std::string_view found = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return found;
}

std::vector<std::string> ExpressionParser::parse_arguments(std::string_view name) {
  std::vector<std::string> arguments;
  do {
    const std::string_view argument = word();
    if (argument.empty()) refuse(fmt::format("names and integers as the arguments of {}", name));
    arguments.emplace_back(argument);
  } while (take(","));
  if (!take(")")) refuse("')'");
  return arguments;
}

void ExpressionParser::parse_name() {
  if (rest_.empty() || !is_letter(rest_.front())) refuse("an integer, a name or '('");
  const std::string_view before = rest_;
  const std::string_view name = word();
  struct Function {
    std::string_view name;
    int arguments;
    Code code;
  };
  static constexpr Function functions[] = {{"ceil_div", 2, Code::ceil_div},
                                           {"round_up", 2, Code::round_up},
                                           {"min", 2, Code::minimum},
                                           {"max", 2, Code::maximum},
                                           {"next_power_of_2", 1, Code::next_power_of_2}};
  const bool is_call = take("(");
  const auto* const function = std::ranges::find(functions, name, &Function::name);
  if (is_call && function != std::end(functions)) {
    for (int i = 0; i < function->arguments; ++i) {
      if (i > 0 && !take(",")) refuse(fmt::format("{} arguments of {}", function->arguments, name));
      parse_binary(0);
    }
    if (!take(")")) refuse(fmt::format("')' after {} arguments of {}", function->arguments, name));
    return emit(function->code);
  }
  const std::vector<std::string> arguments = is_call ? parse_arguments(name) : std::vector<std::string>();
  const std::optional<std::size_t> place = lookup_(name, arguments);
  if (!place) {
    rest_ = before;
    refuse("a name that the manifest declares");
  }
  emit(Code::variable, static_cast<std::int64_t>(*place));
}

void ExpressionParser::skip_spaces() {
  while (rest_.starts_with(' ')) rest_.remove_prefix(1);
}

bool ExpressionParser::take(std::string_view token) {
  skip_spaces();
  if (!rest_.starts_with(token)) return false;
  rest_.remove_prefix(token.size());
  return true;
}

void ExpressionParser::emit(Code code, std::int64_t constant) {
  const bool pushes = code == Code::constant || code == Code::variable;
  const bool is_unary = code == Code::negate || code == Code::logical_not || code == Code::next_power_of_2;
  if (pushes && ++depth_ > Expression::most_depth) refuse("less nesting");
  if (!pushes && !is_unary) --depth_;
  if (made_.steps_.size() == Expression::most_steps)
    refuse(fmt::format("at most {} operations", Expression::most_steps));
  made_.steps_.push_back({code, constant});
}

void ExpressionParser::refuse(std::string_view expected) const {
  const auto at = static_cast<std::size_t>(rest_.data() - text_.data());
  fail(Status::invalid_file, "{}: expected {} at character {} of {}, found {}", source_, expected, at + 1, quote(text_),
       rest_.empty() ? "the end" : quote(rest_, 24));
}

}  // namespace cermet::foreign
