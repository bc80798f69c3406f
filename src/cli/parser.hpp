// Declaring a verb's options. CLI11 parses them; only parser.cpp and main.cpp read its header, which costs seconds wherever it is included.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace cermet::cli {

/// An option that was just declared.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}
  Option& required();
  /// Refuses values outside [least, most].
  Option& range(std::int64_t least, std::int64_t most);
  Option& range(int least, int most) { return range(std::int64_t{least}, std::int64_t{most}); }
  Option& range(double least, double most);
  /// May be given without a value, and has this one then.
  Option& or_alone(const std::string& value);
  /// --help shows the variable's value at this point as the default.
  Option& show_default();

 private:
  CLI::Option* option_;
};

/// The options of one verb, as it declares them. Names are "--long", "-s,--long", or "NAME" for a positional argument; values are stored when the command line
/// is parsed, so the variables must live until then.
class Parser {
 public:
  explicit Parser(CLI::App& app) : app_(app) {}
  Option option(const std::string& names, std::string& value, const std::string& help);
  Option option(const std::string& names, std::optional<std::string>& value, const std::string& help);
  Option option(const std::string& names, std::vector<std::string>& value, const std::string& help);
  Option option(const std::string& names, int& value, const std::string& help);
  Option option(const std::string& names, std::int64_t& value, const std::string& help);
  Option option(const std::string& names, std::uint64_t& value, const std::string& help);
  Option option(const std::string& names, float& value, const std::string& help);
  Option option(const std::string& names, double& value, const std::string& help);
  Option option(const std::string& names, std::optional<double>& value, const std::string& help);
  Option flag(const std::string& names, bool& value, const std::string& help);

 private:
  CLI::App& app_;
};

}  // namespace cermet::cli
