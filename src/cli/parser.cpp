#include "cli/parser.hpp"

#include <CLI/CLI.hpp>

namespace cermet::cli {

Option& Option::required() {
  option_->required();
  return *this;
}

Option& Option::range(std::int64_t least, std::int64_t most) {
  option_->check(CLI::Range(least, most));
  return *this;
}

Option& Option::range(double least, double most) {
  option_->check(CLI::Range(least, most));
  return *this;
}

Option& Option::or_alone(const std::string& value) {
  option_->expected(0, 1)->default_str(value);
  return *this;
}

Option& Option::show_default() {
  option_->capture_default_str();
  return *this;
}

Option Parser::option(const std::string& names, std::string& value, const std::string& help) { return Option(app_.add_option(names, value, help)); }
Option Parser::option(const std::string& names, std::optional<std::string>& value, const std::string& help) {
  return Option(app_.add_option(names, value, help));
}
Option Parser::option(const std::string& names, std::vector<std::string>& value, const std::string& help) {
  return Option(app_.add_option(names, value, help));
}
Option Parser::option(const std::string& names, int& value, const std::string& help) { return Option(app_.add_option(names, value, help)); }
Option Parser::option(const std::string& names, std::int64_t& value, const std::string& help) { return Option(app_.add_option(names, value, help)); }
Option Parser::option(const std::string& names, std::uint64_t& value, const std::string& help) { return Option(app_.add_option(names, value, help)); }
Option Parser::option(const std::string& names, float& value, const std::string& help) { return Option(app_.add_option(names, value, help)); }
Option Parser::option(const std::string& names, double& value, const std::string& help) { return Option(app_.add_option(names, value, help)); }
Option Parser::option(const std::string& names, std::optional<double>& value, const std::string& help) { return Option(app_.add_option(names, value, help)); }
Option Parser::flag(const std::string& names, bool& value, const std::string& help) { return Option(app_.add_flag(names, value, help)); }

}  // namespace cermet::cli
