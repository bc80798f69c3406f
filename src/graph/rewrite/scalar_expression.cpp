#include "graph/rewrite/scalar_expression.hpp"

#include <array>
#include <cmath>

#include "op/schema/text_reader.hpp"

namespace cermet {
namespace {

struct ScalarFunction {
  std::string_view name;
  int operands;
  double (*value)(double a, double b);
};
constexpr std::array<ScalarFunction, 7> scalar_functions{
    {{"sqrt", 1, [](double a, double) { return std::sqrt(a); }},
     {"exp", 1, [](double a, double) { return std::exp(a); }},
     {"log", 1, [](double a, double) { return std::log(a); }},
     {"abs", 1, [](double a, double) { return std::abs(a); }},
     {"min", 2, [](double a, double b) { return std::min(a, b); }},
     {"max", 2, [](double a, double b) { return std::max(a, b); }},
     {"pow", 2, [](double a, double b) { return std::pow(a, b); }}}};

}  // namespace

class ScalarExpressionReader {
 public:
  ScalarExpressionReader(TextReader& reader, FunctionRef<int(std::string_view)> slot_of)
      : reader_(reader), slot_of_(slot_of) {}

  void sum() {
    term();
    while (true) {
      if (reader_.take('+')) term(), add('+');
      else if (reader_.take('-')) term(), add('-');
      else return;
    }
  }
  ScalarExpression result;

 private:
  void term() {
    factor();
    while (true) {
      if (reader_.take('*')) factor(), add('*');
      else if (reader_.take('/')) factor(), add('/');
      else return;
    }
  }

  void factor() {
    const TextReader::Level level(reader_);
    if (reader_.take('-')) return factor(), add('~');
    if (reader_.take('(')) return sum(), reader_.need(')');
    if (is_digit(reader_.peek())) return number();
    const std::string_view name = reader_.name("a captured constant, a number or a function");
    for (std::size_t f = 0; f < scalar_functions.size(); ++f) {
      if (scalar_functions[f].name != name || reader_.peek() != '(') continue;
      reader_.need('(');
      sum();
      if (scalar_functions[f].operands == 2) reader_.need(','), sum();
      reader_.need(')');
      return add('f', 0, static_cast<int>(f));
    }
    reader_.take('#');
    const int slot = slot_of_(name);
    if (slot < 0) reader_.expected("nothing that is not captured before");
    result.slots_.push_back(slot);
    add('c', 0, slot);
  }

  void number() {
    const std::string text(reader_.run([](char c) { return is_digit(c) || c == '.'; }));
    add('n', std::stod(text));
  }

  void add(char action, double number = 0, int slot = 0) { result.steps_.push_back({action, number, slot}); }

  TextReader& reader_;
  FunctionRef<int(std::string_view)> slot_of_;
};

ScalarExpression ScalarExpression::read(TextReader& reader, FunctionRef<int(std::string_view name)> slot_of) {
  ScalarExpressionReader expression(reader, slot_of);
  expression.sum();
  return std::move(expression.result);
}

double ScalarExpression::value(std::span<const double> scalars) const {
  std::vector<double> stack;
  const auto pop = [&] {
    const double top = stack.back();
    stack.pop_back();
    return top;
  };
  for (const Step& step : steps_) {
    if (step.action == 'n') stack.push_back(step.number);
    else if (step.action == 'c') stack.push_back(scalars[static_cast<std::size_t>(step.slot)]);
    else if (step.action == '~') stack.back() = -stack.back();
    else if (step.action == 'f') {
      const ScalarFunction& function = scalar_functions[static_cast<std::size_t>(step.slot)];
      const double b = function.operands == 2 ? pop() : 0;
      stack.back() = function.value(stack.back(), b);
    } else {
      const double b = pop();
      double& a = stack.back();
      a = step.action == '+' ? a + b : step.action == '-' ? a - b : step.action == '*' ? a * b : a / b;
    }
  }
  return stack.back();
}

}  // namespace cermet
