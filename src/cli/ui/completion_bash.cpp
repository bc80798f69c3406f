#include <fmt/format.h>

#include <map>

#include "cli/ui/completion_text.hpp"

namespace cermet::cli {
namespace {

/// Names in `case` patterns: "run --dtype"|"eval --dtype".
class BashCase {
 public:
  void add(const std::string& pattern, const std::string& body) {
    if (bodies_.find(body) == bodies_.end()) order_.push_back(body);
    std::string& patterns = bodies_[body];
    patterns += fmt::format("{}\"{}\"", patterns.empty() ? "" : " | ", pattern);
  }
  std::string text(std::string_view subject) const {
    std::string text = fmt::format("  case {} in\n", subject);
    for (const std::string& body : order_) text += fmt::format("    {})\n      {}\n      ;;\n", bodies_.at(body), body);
    return text + "  esac\n";
  }

 private:
  std::map<std::string, std::string> bodies_;
  std::vector<std::string> order_;
};

std::string bash_value(const OptionDoc& option) {
  switch (completion_kind(option)) {
    case CompletionKind::words:
      return fmt::format("mapfile -t COMPREPLY < <(compgen -W '{}' -- \"$cur\")\n      return",
                         fmt::join(option.values, " "));
    case CompletionKind::file: return "mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n      return";
    case CompletionKind::folder: return "mapfile -t COMPREPLY < <(compgen -d -- \"$cur\")\n      return";
    case CompletionKind::other: break;
  }
  return "return";
}

}  // namespace

std::string bash_completion() {
  std::string known;
  BashCase values, words;
  for (const auto& command : commands().all()) {
    if (command->is_internal) continue;
    if (!command->name.empty()) {
      const std::size_t space = command->name.find(' ');
      known += fmt::format("{}\":{}\"", known.empty() ? "" : " | ",
                           space == std::string::npos
                               ? ":" + command->name
                               : command->name.substr(0, space) + ":" + command->name.substr(space + 1));
    }
    std::string members, options, positional;
    for (const CommandDoc* member : commands().members(command->name))
      members += (members.empty() ? "" : " ") + member->name.substr(member->name.find(' ') + 1);
    for (const OptionDoc& option : command->options) {
      if (option.is_positional) {
        if (positional.empty() && completion_kind(option) == CompletionKind::words)
          positional = fmt::format("{}", fmt::join(option.values, " "));
        continue;
      }
      options += (options.empty() ? "" : " ") + option.name();
      for (const std::string& name : option.names)
        if (!option.metavar.empty()) values.add(command->name + " " + name, bash_value(option));
    }
    words.add(command->name, fmt::format("options='{}' words='{}'", options, members.empty() ? positional : members));
  }
  std::string text =
      "# bash completion for cermet; written by `cermet completion bash`.\n"
      "_cermet() {\n"
      "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} command='' options='' words='' i\n"
      "  COMPREPLY=()\n"
      "  if [[ $cur == '=' ]]; then cur=''; fi\n"
      "  if [[ $prev == '=' ]]; then prev=${COMP_WORDS[COMP_CWORD - 2]}; fi  # --option=value\n"
      "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
      "    case \":${command// /:}:${COMP_WORDS[i]}\" in\n";
  text += fmt::format("      {}) command=${{command:+$command }}${{COMP_WORDS[i]}} ;;\n    esac\n  done\n", known);
  text += values.text("\"$command $prev\"") + words.text("\"$command\"");
  text +=
      "  if [[ $cur == -* ]]; then\n"
      "    mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$cur\")\n"
      "  elif [[ -n $words ]]; then\n"
      "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
      "    if [[ ${#COMPREPLY[@]} -eq 0 && -n $command ]]; then mapfile -t COMPREPLY < <(compgen -f -- \"$cur\"); fi\n"
      "  else\n"
      "    mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
      "  fi\n"
      "}\n"
      "complete -o filenames -F _cermet cermet\n";
  return text;
}

}  // namespace cermet::cli
