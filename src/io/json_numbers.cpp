#include "io/json_numbers.hpp"

#include <array>
#include <cmath>
#include <limits>

namespace cermet {
namespace {

constexpr char mark =
    '\x7f';  // a control character that JSON allows in strings; texts that have one anyway are left alone

struct PythonNumber {
  std::string_view name, marked;
  double value;
};
constexpr std::array<PythonNumber, 3> numbers{
    {{"NaN", "\"\x7f\"", std::numeric_limits<double>::quiet_NaN()},
     {"Infinity", "\"\x7f+    \"", std::numeric_limits<double>::infinity()},
     {"-Infinity", "\"\x7f-     \"", -std::numeric_limits<double>::infinity()}}};
static_assert(numbers[0].name.size() == numbers[0].marked.size() &&
              numbers[1].name.size() == numbers[1].marked.size() && numbers[2].name.size() == numbers[2].marked.size());

bool is_key(std::string_view after) {
  const std::size_t next = after.find_first_not_of(" \t\r\n");
  return next != std::string_view::npos && after[next] == ':';
}

}  // namespace

std::optional<std::string> mark_python_numbers(std::string_view text) {
  if ((text.find("NaN") == std::string_view::npos && text.find("Infinity") == std::string_view::npos) ||
      text.find(mark) != std::string_view::npos)
    return std::nullopt;
  std::string marked(text);
  bool in_string = false, any = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') in_string = !in_string;
    if (in_string && text[i] == '\\') ++i;
    if (in_string) continue;
    for (const PythonNumber& number : numbers) {
      if (!text.substr(i).starts_with(number.name) || is_key(text.substr(i + number.name.size()))) continue;
      marked.replace(i, number.name.size(), number.marked);
      i += number.name.size() - 1;
      any = true;
      break;
    }
  }
  return any ? std::optional(std::move(marked)) : std::nullopt;
}

std::optional<double> marked_number(std::string_view string) {
  if (string.empty() || string.front() != mark) return std::nullopt;
  for (const PythonNumber& number : numbers)
    if (number.marked.substr(1, number.marked.size() - 2) == string) return number.value;
  return std::nullopt;
}

void unmark_python_numbers(std::string& text) {
  for (const PythonNumber& number : numbers)
    for (std::size_t at = text.find(number.marked); at != std::string::npos; at = text.find(number.marked, at))
      text.replace(at, number.name.size(), number.name);
}

std::string_view python_name(double not_finite) {
  for (const PythonNumber& number : numbers)
    if (number.value == not_finite) return number.name;
  return numbers.front().name;
}

}  // namespace cermet
