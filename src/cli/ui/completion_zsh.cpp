#include <fmt/format.h>

#include "cli/ui/completion_text.hpp"

namespace cermet::cli {
namespace {

/// Text inside single quotes of an _arguments specification.
std::string zsh_quoted(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'') out += "'\\''";
    else if (c == '[' || c == ']' || c == ':' || c == '\\') out += std::string("\\") + c;
    else out += c;
  }
  return out;
}

std::string zsh_value(const OptionDoc& option) {
  std::string name = option.metavar;
  std::erase_if(name, [](char c) { return c == '<' || c == '>'; });
  switch (completion_kind(option)) {
    case CompletionKind::words: {
      std::string words;
      for (const std::string& value : option.values) words += (words.empty() ? "" : " ") + zsh_quoted(value);
      return fmt::format(":{}:({})", zsh_quoted(name), words);
    }
    case CompletionKind::file: return fmt::format(":{}:_files", zsh_quoted(name));
    case CompletionKind::folder: return fmt::format(":{}:_files -/", zsh_quoted(name));
    case CompletionKind::other: break;
  }
  return fmt::format(":{}: ", zsh_quoted(name));
}

std::string function_of(const CommandDoc& command) {
  std::string name = "_cermet";
  if (!command.name.empty()) name += "_" + command.name;
  for (char& c : name)
    if (c == ' ' || c == '-') c = '_';
  return name;
}

/// Names of one word below the command, and where the word leads.
std::string zsh_members(const CommandDoc& command, const std::vector<const CommandDoc*>& members) {
  std::string list, cases;
  for (const CommandDoc* member : members) {
    const std::string word = member->name.substr(member->name.find(' ') + 1);
    list += fmt::format("    '{}:{}'\n", word, zsh_quoted(member->summary));
    cases += fmt::format("        {}) {} ;;\n", word, function_of(*member));
  }
  return fmt::format(
      "  local -a commands\n  commands=(\n{}  )\n"
      "  _arguments -C '1: :->command' '*:: :->rest'\n"
      "  case $state in\n    command) _describe -t commands '{} command' commands{} ;;\n    rest)\n      case "
      "$words[1] in\n{}{}      esac\n      ;;\n  esac\n",
      list, command.name.empty() ? "cermet" : command.name, command.is_verb ? "; _files" : "", cases,
      command.is_verb ? fmt::format("        *) {}_itself ;;\n", function_of(command)) : "");
}

std::string zsh_options(const CommandDoc& command) {
  std::string text = "  _arguments -s";
  for (const OptionDoc& option : command.options) {
    if (option.is_positional) {
      text += fmt::format(" \\\n    '{}{}'", option.is_repeated ? "*" : "", zsh_value(option));
      continue;
    }
    for (const std::string& name : option.names)
      text += fmt::format(" \\\n    '{}{}[{}]{}'", option.is_repeated ? "*" : "", name, zsh_quoted(short_help(option)),
                          option.metavar.empty() ? "" : zsh_value(option));
  }
  return text + "\n";
}

}  // namespace

std::string zsh_completion() {
  std::string text = "#compdef cermet\n# zsh completion for cermet; written by `cermet completion zsh`.\n\n";
  for (const auto& command : commands().all()) {
    if (command->is_internal) continue;
    const std::vector<const CommandDoc*> members = commands().members(command->name);
    const bool has_both = command->is_verb && !members.empty();
    if (!members.empty())
      text += fmt::format("{}() {{\n  local state line curcontext=\"$curcontext\"\n{}}}\n\n", function_of(*command),
                          zsh_members(*command, members));
    if (members.empty() || has_both)
      text +=
          fmt::format("{}{}() {{\n{}}}\n\n", function_of(*command), has_both ? "_itself" : "", zsh_options(*command));
  }
  return text + "if [ \"$funcstack[1]\" = _cermet ]; then _cermet \"$@\"; else compdef _cermet cermet; fi\n";
}

}  // namespace cermet::cli
