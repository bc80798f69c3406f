#include "cli/ui/parser.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <type_traits>

#include "base/error.hpp"
#include "base/text.hpp"
#include "cli/ui/number_option.hpp"

namespace cermet::cli {
namespace {

/// "a, b or c".
std::string any_of_text(const std::vector<std::string>& values) {
  std::string text;
  for (std::size_t i = 0; i < values.size(); ++i)
    text += (i == 0 ? "" : i + 1 == values.size() ? " or " : ", ") + values[i];
  return text;
}

template <class T>
struct Unwrapped {
  using type = T;
};
template <class T>
struct Unwrapped<std::optional<T>> {
  using type = T;
};
template <class T>
using ValueOf = typename Unwrapped<T>::type;

template <class T>
constexpr bool is_number = std::is_arithmetic_v<ValueOf<T>> && !std::is_same_v<T, bool>;

template <class T>
std::shared_ptr<NumberBounds> bounds_of() {
  if constexpr (!is_number<T>) return nullptr;
  else {
    auto bounds = std::make_shared<NumberBounds>();
    using Value = ValueOf<T>;
    bounds->is_whole = std::is_integral_v<Value>;
    bounds->is_unsigned = std::is_same_v<Value, std::uint64_t>;
    if constexpr (std::is_same_v<Value, int>)
      bounds->least = std::numeric_limits<int>::min(), bounds->most = std::numeric_limits<int>::max();
    if constexpr (std::is_same_v<Value, float>)
      bounds->least_real = std::numeric_limits<float>::lowest(), bounds->most_real = std::numeric_limits<float>::max();
    return bounds;
  }
}

/// "-o,--output <FILE>" as names, the value's name, and how CLI11 reads the names.
OptionDoc parse_names(const std::string& text, std::string& for_cli11) {
  OptionDoc doc;
  const std::size_t space = text.find(' ');
  for_cli11 = text.substr(0, space);
  if (space != std::string::npos) doc.metavar = text.substr(space + 1);
  bool long_seen = false;
  for (std::size_t begin = 0; begin < for_cli11.size();) {
    const std::size_t end = std::min(for_cli11.find(',', begin), for_cli11.size());
    std::string name = for_cli11.substr(begin, end - begin);
    begin = end + 1;
    (long_seen ? doc.aliases : doc.names).push_back(name);
    long_seen |= name.starts_with("--");
  }
  doc.is_positional = !for_cli11.starts_with("-");
  if (doc.is_positional && doc.metavar.empty()) doc.metavar = "<" + for_cli11 + ">";
  return doc;
}

std::string text_of(unsigned inputs) {
  std::vector<std::string> kinds;
  if (inputs & checkpoint_input) kinds.emplace_back("a checkpoint's folder");
  if (inputs & onnx_input) kinds.emplace_back("an ONNX file");
  if (inputs & graph_input) kinds.emplace_back("a graph");
  return any_of_text(kinds);
}

}  // namespace

Option& Option::required() {
  option_->required();
  doc().is_required = true;
  return *this;
}

Option& Option::range(std::int64_t least, std::int64_t most) {
  bounds_->least = least;
  bounds_->most = most;
  bounds_->is_ranged = true;
  return *this;
}

Option& Option::range(double least, double most) {
  bounds_->least_real = least;
  bounds_->most_real = most;
  bounds_->is_ranged = true;
  return *this;
}

Option& Option::above(double least, double most) {
  bounds_->is_open = true;
  return range(least, most);
}

Option& Option::values(std::vector<std::string> values) {
  doc().values = values;
  option_->check(CLI::Validator(
      [values = std::move(values)](std::string& text) {
        return std::ranges::find(values, text) != values.end()
                   ? std::string()
                   : fmt::format("expected {}, found {}", any_of_text(values), quote(text));
      },
      ""));
  return *this;
}

Option& Option::suggests(std::vector<std::string> values) {
  doc().values = std::move(values);
  return *this;
}

Option& Option::or_alone(const std::string& value) {
  option_->expected(0, 1)->default_str(value);
  return *this;
}

Option& Option::show_default() {
  option_->capture_default_str();
  doc().fallback = option_->get_default_str();
  return *this;
}

Option& Option::default_text(const std::string& text) {
  doc().fallback = text;
  return *this;
}

Option& Option::needs(const std::string& other) {
  option_->needs(app_->get_option(other));
  return *this;
}

Option& Option::advanced() {
  doc().is_advanced = true;
  return *this;
}

bool GivenOptions::has(const std::string& name) const {
  return std::ranges::any_of(entries_,
                             [&](const Entry& entry) { return entry.name == name && entry.option->count() > 0; });
}

void GivenOptions::check_input(Input input, const std::string& named) const {
  for (const Entry& entry : entries_)
    if (entry.option->count() > 0 && !(entry.inputs & input))
      fail(Status::invalid_argument, "{}: expected {} with it, found {} ({}), which it has no effect on", entry.name,
           text_of(entry.inputs), text_of(input), named);
}

void GivenOptions::check_only(const std::string& mode, const std::vector<std::string>& allowed) const {
  for (const Entry& entry : entries_)
    if (entry.option->count() > 0 && entry.name != mode && std::ranges::find(allowed, entry.name) == allowed.end())
      fail(Status::invalid_argument, "{}: expected no {} with it, found both", entry.name, mode);
}

void Parser::section(const std::string& heading, unsigned inputs) {
  section_ = heading;
  inputs_ = inputs;
}

CLI::Option* Parser::document(CLI::Option* option, OptionDoc doc) {
  doc.section = doc.is_positional ? "Arguments" : section_;
  given_->entries_.push_back({option, doc.name(), doc.is_positional ? any_input : inputs_});
  command_.options.push_back(std::move(doc));
  return option;
}

template <class T>
Option Parser::add(const std::string& names, T& value, const std::string& help) {
  std::string for_cli11;
  OptionDoc doc = parse_names(names, for_cli11);
  if (doc.metavar.empty()) doc.metavar = is_number<T> ? "<N>" : "<TEXT>";
  doc.is_repeated = std::is_same_v<T, std::vector<std::string>>;
  doc.help = help;
  CLI::Option* const made = document(app_.add_option(for_cli11, value, help), std::move(doc));
  std::shared_ptr<NumberBounds> bounds = bounds_of<T>();
  if (bounds) made->transform(CLI::Validator(number_check(bounds), ""));
  return Option(app_, made, command_, std::move(bounds));
}

Option Parser::option(const std::string& names, std::string& value, const std::string& help) {
  return add(names, value, help);
}
Option Parser::option(const std::string& names, std::optional<std::string>& value, const std::string& help) {
  return add(names, value, help);
}
Option Parser::option(const std::string& names, std::vector<std::string>& value, const std::string& help) {
  return add(names, value, help);
}
Option Parser::option(const std::string& names, int& value, const std::string& help) { return add(names, value, help); }
Option Parser::option(const std::string& names, std::int64_t& value, const std::string& help) {
  return add(names, value, help);
}
Option Parser::option(const std::string& names, std::uint64_t& value, const std::string& help) {
  return add(names, value, help);
}
Option Parser::option(const std::string& names, float& value, const std::string& help) {
  return add(names, value, help);
}
Option Parser::option(const std::string& names, double& value, const std::string& help) {
  return add(names, value, help);
}
Option Parser::option(const std::string& names, std::optional<double>& value, const std::string& help) {
  return add(names, value, help);
}

Option Parser::flag(const std::string& names, bool& value, const std::string& help) {
  std::string for_cli11;
  OptionDoc doc = parse_names(names, for_cli11);
  doc.help = help;
  return Option(app_, document(app_.add_flag(for_cli11, value, help), std::move(doc)), command_);
}

}  // namespace cermet::cli
