#include "cli/parse_error.hpp"

#include <algorithm>
#include <iterator>
#include <regex>
#include <sstream>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"
#include "cli/console.hpp"

namespace cermet::cli {
namespace {

/// The verb that was typed, as far as it was understood.
const CLI::App& verb_of(const CLI::App& app) { return app.get_subcommands().empty() ? app : verb_of(*app.get_subcommands().front()); }

std::string name_of(const CLI::App& app) {
  for (const CLI::App* sub : app.get_subcommands()) return app.get_name() + " " + name_of(*sub);
  return app.get_name();
}

/// Numbers as they are, other text quoted.
std::string shown(const std::string& value) {
  static const std::regex number(R"(-?\d+(\.\d+)?)");
  return std::regex_match(value, number) ? value : quote(value);
}

/// A limit without the zeros behind its point.
std::string limit(const std::string& number) { return std::regex_replace(number, std::regex(R"(\.?0+$)"), number.find('.') == std::string::npos ? "$&" : ""); }

/// Arguments that nobody takes, which come in reverse.
std::string in_order(const std::string& arguments) {
  std::istringstream words(arguments);
  std::vector<std::string> list{std::istream_iterator<std::string>(words), {}};
  std::ranges::reverse(list);
  return fmt::format("{}", fmt::join(list, " "));
}

struct Rewording {
  const char* pattern;
  std::string (*text)(const CLI::App& verb, const std::smatch& found);
};

constexpr Rewording rewordings[] = {
    {"Could not convert: (\\S+) = (.*)",
     [](const CLI::App& verb, const std::smatch& m) {
       const CLI::Option* const option = verb.get_option_no_throw(m[1].str());
       return fmt::format("{}: expected {}, found {}", m[1].str(), option ? option->get_type_name() : "another type", quote(m[2].str()));
     }},
    {"(\\S+): Value (.*) not in range (\\S+) to (\\S+)",
     [](const CLI::App&, const std::smatch& m) {
       return fmt::format("{}: expected {} to {}, found {}", m[1].str(), limit(m[3].str()), limit(m[4].str()), shown(m[2].str()));
     }},
    {"(\\S+): At Most (\\d+) required but received (\\d+)",
     [](const CLI::App&, const std::smatch& m) {
       return fmt::format("{}: expected {}, found {}", m[1].str(), m[2].str() == "1" ? "one value" : fmt::format("at most {} values", m[2].str()), m[3].str());
     }},
    {"(\\S+): \\d+ required (.*) missing",
     [](const CLI::App&, const std::smatch& m) { return fmt::format("{}: expected {}, found nothing", m[1].str(), m[2].str()); }},
    {"(\\S+) is required", [](const CLI::App&, const std::smatch& m) { return fmt::format("{}: expected a value, found none", m[1].str()); }},
    {"The following arguments? (?:was|were) not expected: (.*)",
     [](const CLI::App&, const std::smatch& m) { return fmt::format("arguments: expected only those of the verb, found {}", quote(in_order(m[1].str()))); }},
};

}  // namespace

std::string text_of(const CLI::App& app, const CLI::ParseError& error) {
  std::string text = one_line(error.what());
  for (const Rewording& each : rewordings)
    if (std::smatch found; std::regex_match(text, found, std::regex(each.pattern))) {
      text = each.text(verb_of(app), found);
      break;
    }
  return fmt::format("{} (see `{} --help`)", text, name_of(app));
}

}  // namespace cermet::cli
