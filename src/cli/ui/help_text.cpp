#include "cli/ui/help_text.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "base/text.hpp"

namespace cermet::cli {
namespace {

constexpr std::size_t most_columns = 100, fewest_columns = 40, widest_name = 30;

std::size_t columns_of(std::string_view text) {
  std::size_t columns = 0;
  for (; !text.empty(); ++columns) text.remove_prefix(first_utf8_unit(text).size);
  return columns;
}

std::string heading(std::string_view text, const HelpStyle& style) {
  return style.is_coloured ? fmt::format("\x1b[1m{}:\x1b[0m\n", text) : fmt::format("{}:\n", text);
}

/// "  -n, --new-tokens <N>".
std::string option_label(const OptionDoc& option) {
  if (option.is_positional) return fmt::format("{}{}", option.metavar, option.is_repeated ? "..." : "");
  std::string text = option.names.front().starts_with("--") ? "    " : "";
  for (const std::string& name : option.names) text += (name == option.names.front() ? "" : ", ") + name;
  if (!option.metavar.empty()) text += " " + option.metavar;
  return text;
}

std::string option_help(const OptionDoc& option) {
  std::string text = option.help;
  if (!option.fallback.empty()) text += fmt::format(" [default: {}]", option.fallback);
  if (!option.values.empty()) text += fmt::format(" [possible values: {}]", fmt::join(option.values, ", "));
  return text;
}

/// Labels on the left, wrapped help on the right; below a label that is too wide.
class Columns {
 public:
  void row(std::string label, std::string help) { rows_.emplace_back(std::move(label), std::move(help)); }
  std::string text(std::size_t width) const {
    std::size_t left = 0;
    for (const auto& [label, help] : rows_)
      if (columns_of(label) <= widest_name) left = std::max(left, columns_of(label));
    const std::size_t indent = std::min(left + 4, width / 2);
    std::string text;
    for (const auto& [label, help] : rows_) {
      text += "  " + label;
      if (columns_of(label) + 4 <= indent) text.append(indent - 2 - columns_of(label), ' ');
      else text += "\n" + std::string(indent, ' ');
      text += wrapped_text(help, indent, width) + "\n";
    }
    return text;
  }

 private:
  std::vector<std::pair<std::string, std::string>> rows_;
};

/// Headings in the order in which they occur first.
template <class List, class HeadingOf>
std::vector<std::string> headings_of(const List& list, HeadingOf of) {
  std::vector<std::string> found;
  for (const auto& each : list)
    if (std::string text = of(each); std::ranges::find(found, text) == found.end()) found.push_back(std::move(text));
  return found;
}

std::string members_text(const CommandDoc& command, const HelpStyle& style) {
  std::vector<const CommandDoc*> members = commands().members(command.name);
  if (command.name.empty()) {  // and `explain op`, whose group is a verb itself
    members.clear();
    for (const auto& each : commands().all()) {
      const std::size_t space = each->name.find(' ');
      if (!each->is_internal && !each->name.empty() &&
          (space == std::string::npos || commands().find(each->name.substr(0, space))->is_verb))
        members.push_back(each.get());
    }
  }
  const auto of = [&](const CommandDoc* member) {
    return command.name.empty() && !member->heading.empty() ? member->heading : "Commands";
  };
  std::string text;
  for (const std::string& title : headings_of(members, of)) {
    Columns columns;
    for (const CommandDoc* member : members)
      if (of(member) == title)
        columns.row(fmt::format("{:<13}",
                                command.name.empty() ? member->name : member->name.substr(member->name.find(' ') + 1)),
                    member->summary);
    text += heading(title, style) + columns.text(style.width) + "\n";
  }
  return text;
}

std::string options_text(const CommandDoc& command, const HelpStyle& style, bool& hides) {
  std::string text;
  const auto of = [](const OptionDoc& option) { return option.section; };
  std::vector<std::string> titles = headings_of(command.options, of);
  std::ranges::stable_partition(titles, [](const std::string& title) { return title == "Arguments"; });
  std::ranges::stable_partition(titles, [](const std::string& title) { return title != "General"; });
  for (const std::string& title : titles) {
    Columns columns;
    bool empty = true;
    for (const OptionDoc& option : command.options) {
      if (of(option) != title) continue;
      if (option.is_advanced && !style.is_all) {
        hides = true;
        continue;
      }
      columns.row(option_label(option), option_help(option));
      empty = false;
    }
    if (!empty) text += heading(title, style) + columns.text(style.width) + "\n";
  }
  return text;
}

}  // namespace

std::size_t help_width() {
  std::size_t columns = most_columns;
  if (winsize size{}; isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    columns = size.ws_col;
  } else if (const char* const given = std::getenv("COLUMNS")) {
    const std::string_view text(given);
    std::from_chars(text.data(), text.data() + text.size(), columns);
  }
  return std::clamp(columns, fewest_columns, most_columns);
}

std::string wrapped_text(std::string_view text, std::size_t indent, std::size_t width) {
  const std::size_t room = std::max<std::size_t>(width - std::min(indent, width), 20);
  std::string out;
  std::size_t used = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t columns = columns_of(word);
    if (used > 0 && used + 1 + columns > room) out += "\n" + std::string(indent, ' '), used = 0;
    if (used > 0) out += ' ', ++used;
    out += word;
    used += columns;
  }
  return out;
}

std::string exit_codes_text() {
  return "  0    done\n"
         "  1    internal error: please report it\n"
         "  2    a mistake in the input: one line on standard error says what was expected and what\n"
         "       was found; with --json also {\"error\": ...} on standard output\n"
         "  130  stopped by Ctrl-C\n";
}

std::string help_text(const CommandDoc& command, const HelpStyle& style) {
  std::string text = wrapped_text(command.summary, 0, style.width) + "\n\n" + heading("Usage", style);
  text.pop_back();
  text += " " + usage_of(command) + "\n\n";
  const bool is_top = command.name.empty();
  if (!command.examples.empty()) {
    text += heading(command.examples.size() > 1 ? "Examples" : "Example", style);
    for (const std::string& example : command.examples) text += "  " + example + "\n";
    text += "\n";
  }
  bool hides = false;
  const std::string options = options_text(command, style, hides);
  text += members_text(command, style) + options;
  if (is_top) text += heading("Exit codes", style) + exit_codes_text() + "\n";
  const std::string name = spoken_name(command);
  if (!command.is_verb) text += fmt::format("`{} <COMMAND> --help` describes a command, with examples.\n", name);
  else if (hides) text += fmt::format("`{} --help-all` lists advanced options, too.\n", name);
  while (text.ends_with("\n\n")) text.pop_back();
  return text;
}

}  // namespace cermet::cli
