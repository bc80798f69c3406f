#include <fmt/format.h>

#include "cli/ui/completion_text.hpp"

namespace cermet::cli {
namespace {

std::string fish_quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

std::string fish_option(const CommandDoc& command, const OptionDoc& option) {
  std::string text = fmt::format("complete -c cermet -n '__cermet_is {}'",
                                 fish_quoted(command.name) == "''" ? "\"\"" : "\"" + command.name + "\"");
  for (const std::string& name : option.names)
    text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  if (!option.metavar.empty()) {
    switch (completion_kind(option)) {
      case CompletionKind::words:
        text += fmt::format(" -x -a {}", fish_quoted(fmt::format("{}", fmt::join(option.values, " "))));
        break;
      case CompletionKind::file: text += " -r -F"; break;
      case CompletionKind::folder: text += " -x -a '(__fish_complete_directories)'"; break;
      case CompletionKind::other: text += " -x"; break;
    }
  }
  return text + " -d " + fish_quoted(short_help(option)) + "\n";
}

}  // namespace

std::string fish_completion() {
  std::string pairs;
  for (const auto& command : commands().all())
    if (!command->is_internal && command->name.find(' ') != std::string::npos)
      pairs += " " + fish_quoted(command->name);
  std::string text = fmt::format(
      "# fish completion for cermet; written by `cermet completion fish`.\n"
      "function __cermet_command\n"
      "    set -l words (commandline -opc)\n"
      "    set -e words[1]\n"
      "    set -l found ''\n"
      "    for word in $words\n"
      "        string match -q -- '-*' $word; and continue\n"
      "        if test -z \"$found\"\n"
      "            set found $word\n"
      "            continue\n"
      "        end\n"
      "        contains -- \"$found $word\"{}; and set found \"$found $word\"\n"
      "        break\n"
      "    end\n"
      "    echo \"$found\"\n"
      "end\n"
      "function __cermet_is\n"
      "    set -l found (__cermet_command)\n"
      "    test \"$found\" = \"$argv[1]\"\n"
      "end\n",
      pairs);
  for (const auto& command : commands().all()) {
    if (command->is_internal) continue;
    for (const CommandDoc* member : commands().members(command->name))
      text += fmt::format("complete -c cermet -f -n '__cermet_is \"{}\"' -a {} -d {}\n", command->name,
                          fish_quoted(member->name.substr(member->name.find(' ') + 1)), fish_quoted(member->summary));
    for (const OptionDoc& option : command->options) {
      if (!option.is_positional) text += fish_option(*command, option);
      else if (completion_kind(option) == CompletionKind::words)
        text += fmt::format("complete -c cermet -f -n '__cermet_is \"{}\"' -a {}\n", command->name,
                            fish_quoted(fmt::format("{}", fmt::join(option.values, " "))));
    }
  }
  return text;
}

}  // namespace cermet::cli
