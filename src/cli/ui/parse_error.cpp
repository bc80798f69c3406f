#include "cli/ui/parse_error.hpp"

#include <algorithm>
#include <regex>

#include "base/text.hpp"
#include "cli/ui/console.hpp"
#include "cli/ui/suggest.hpp"

namespace cermet::cli {
namespace {

/// The verb's parser, as far as it was understood.
const CLI::App& verb_of(const CLI::App& app) {
  return app.get_subcommands().empty() ? app : verb_of(*app.get_subcommands().front());
}

/// "'--new-token'", the value cut off.
std::string quoted_argument(const std::string& word) {
  const std::string name = word.starts_with('-') ? word.substr(0, word.find('=')) : word;
  return is_plain(name) && name.size() <= 80 ? "'" + name + "'" : quote(name);
}

std::string unexpected(const std::string& word, const CommandDoc& command) {
  return fmt::format("unexpected argument {}{}", quoted_argument(word), option_hint(word, command));
}

/// The first argument that is not declared, an option before other words; "" where there is none.
std::string unknown_argument(const CLI::App& verb, const std::vector<std::string>& arguments) {
  for (const std::string& word : arguments) {
    if (word == "--") break;
    if (is_foreign_option(word) && !verb.get_option_no_throw(word)) return word;
  }
  const std::vector<std::string> left = verb.remaining();
  const auto option = std::ranges::find_if(
      left, [](const std::string& word) { return word.size() > 1 && word[0] == '-' && word != "--"; });
  if (option != left.end()) return *option;
  const auto word = std::ranges::find_if(left, [](const std::string& each) { return each != "--"; });
  return word == left.end() ? "" : *word;
}

struct Rewording {
  const char* pattern;
  std::string (*text)(const CommandDoc& command, const std::smatch& found);
};

const OptionDoc* option_named(const CommandDoc& command, const std::string& name) {
  for (const OptionDoc& option : command.options)
    if (std::ranges::find(option.names, name) != option.names.end()) return &option;
  return nullptr;
}

/// What an option takes: "<N>".
std::string value_of(const CommandDoc& command, const std::string& name) {
  const OptionDoc* const option = option_named(command, name);
  return option && !option->metavar.empty() ? option->metavar : "a value";
}

constexpr Rewording rewordings[] = {
    {"(\\S+): At Most (\\d+) required but received (\\d+)",
     [](const CommandDoc&, const std::smatch& m) {
       return fmt::format("{}: expected {}, found {}", m[1].str(),
                          m[2].str() == "1" ? "one value" : fmt::format("at most {} values", m[2].str()), m[3].str());
     }},
    {"(\\S+): \\d+ required .* missing",
     [](const CommandDoc& command, const std::smatch& m) {
       return fmt::format("{}: expected {}, found nothing", m[1].str(), value_of(command, m[1].str()));
     }},
    {"(\\S+): At least \\d+ required.*",
     [](const CommandDoc& command, const std::smatch& m) {
       return fmt::format("{}: expected {}, found nothing", m[1].str(), value_of(command, m[1].str()));
     }},
    {"(\\S+) requires (\\S+)",
     [](const CommandDoc&, const std::smatch& m) {
       return fmt::format("{}: expected {} with it, found none", m[1].str(), m[2].str());
     }},
    {"(\\S+) is required",
     [](const CommandDoc&, const std::smatch& m) {
       return fmt::format("{}: expected a value, found none", m[1].str());
     }},
};

std::string reworded(const CommandDoc& command, const CLI::ParseError& error) {
  std::string text = one_line(error.what());
  for (const Rewording& each : rewordings)
    if (std::smatch found; std::regex_match(text, found, std::regex(each.pattern))) return each.text(command, found);
  return text;
}

}  // namespace

std::string parse_error_text(const CLI::App& app, const CommandDoc& command, const CLI::ParseError& error,
                             const std::vector<std::string>& arguments) {
  const std::string unknown = unknown_argument(verb_of(app), arguments);
  const bool by_value = error.get_name() == "ValidationError" && (unknown.empty() || !is_foreign_option(unknown));
  if (unknown.empty() || by_value)
    return fmt::format("{} (see `{} --help`)", reworded(command, error), spoken_name(command));
  return fmt::format("{} (usage: {}; see `{} --help`)", unexpected(unknown, command), usage_of(command),
                     spoken_name(command));
}

}  // namespace cermet::cli
