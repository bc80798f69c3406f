// Declaring a verb's options. CLI11 parses them; only parser.cpp, parse_error.cpp and command_line.cpp read its header,
// which costs seconds wherever it is included.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/ui/command.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace cermet::cli {

struct NumberBounds;

/// An option that was just declared. Its help is a phrase; what it takes, its default and its values are added.
class Option {
 public:
  Option(CLI::App& app, CLI::Option* option, CommandDoc& command, std::shared_ptr<NumberBounds> bounds = nullptr)
      : app_(&app),
        option_(option),
        command_(&command),
        index_(command.options.size() - 1),
        bounds_(std::move(bounds)) {}
  Option& required();
  /// Refuses values outside [least, most].
  Option& range(std::int64_t least, std::int64_t most);
  Option& range(int least, int most) { return range(std::int64_t{least}, std::int64_t{most}); }
  Option& range(double least, double most);
  /// A real number above `least`.
  Option& above(double least, double most);
  /// Takes one of these alone.
  Option& values(std::vector<std::string> values);
  /// Takes these, and others that the verb checks.
  Option& suggests(std::vector<std::string> values);
  /// May be given without a value, and has this one then.
  Option& or_alone(const std::string& value);
  /// --help shows the variable's value at this point as the default.
  Option& show_default();
  /// --help shows this as the default.
  Option& default_text(const std::string& text);
  /// Refused without `other`, which was declared before.
  Option& needs(const std::string& other);
  /// Shown by --help-all alone.
  Option& advanced();

 private:
  OptionDoc& doc() { return command_->options[index_]; }

  CLI::App* app_;
  CLI::Option* option_;
  CommandDoc* command_;
  std::size_t index_;
  std::shared_ptr<NumberBounds> bounds_;
};

/// What the argument of a verb may be; options may be of some of them alone.
enum Input : unsigned { checkpoint_input = 1, onnx_input = 2, graph_input = 4, any_input = 7 };

/// Which options were given, once the command line is parsed.
class GivenOptions {
 public:
  bool has(const std::string& name) const;
  /// Throws Error naming the first option that was given and has no effect on `input`, which `named` is.
  void check_input(Input input, const std::string& named) const;
  /// Throws Error naming the first option that was given and is not one of `allowed`, beside which `mode` has an effect
  /// alone.
  void check_only(const std::string& mode, const std::vector<std::string>& allowed) const;

 private:
  friend class Parser;
  struct Entry {
    const CLI::Option* option;
    std::string name;
    unsigned inputs;
  };
  std::vector<Entry> entries_;
};

/// The options of one verb, as it declares them. Names are "-s,--long <METAVAR>", or "NAME" for a positional argument;
/// other spellings of the same option come after the first long one. Values are stored when the command line is parsed,
/// so the variables must live until then.
class Parser {
 public:
  Parser(CLI::App& app, CommandDoc& command) : app_(app), command_(command), given_(std::make_shared<GivenOptions>()) {}
  /// Options that follow stand under this heading in the verb's help, and have an effect on these inputs alone.
  void section(const std::string& heading, unsigned inputs = any_input);
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
  std::shared_ptr<const GivenOptions> given() const { return given_; }

 private:
  template <class T>
  Option add(const std::string& names, T& value, const std::string& help);
  CLI::Option* document(CLI::Option* option, OptionDoc doc);

  CLI::App& app_;
  CommandDoc& command_;
  std::string section_ = "Options";
  unsigned inputs_ = any_input;
  std::shared_ptr<GivenOptions> given_;
};

}  // namespace cermet::cli
