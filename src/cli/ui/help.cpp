// cermet help: what --help prints, of a command that is named.
#include <unistd.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "cli/ui/help_text.hpp"
#include "cli/ui/suggest.hpp"
#include "cli/verb.hpp"

namespace cermet::cli::help_verb {
namespace {

const CommandDoc& command_named(const std::vector<std::string>& words) {
  std::string name;
  for (const std::string& word : words) {
    const std::string group = name;
    name += (name.empty() ? "" : " ") + word;
    if (!commands().find(name))
      fail(Status::invalid_argument, "no such command: {}{} (see `cermet --help`)", is_plain(name) ? name : quote(name),
           command_hint(word, group));
  }
  return *commands().find(name);
}

Json command_json(const CommandDoc& command) {
  Json options = Json::array();
  for (const OptionDoc& option : command.options)
    options.push_back({{"names", option.names},
                       {"value", option.metavar.empty() ? Json() : Json(option.metavar)},
                       {"help", option.help},
                       {"section", option.section},
                       {"default", option.fallback.empty() ? Json() : Json(option.fallback)},
                       {"values", option.values},
                       {"positional", option.is_positional},
                       {"required", option.is_required}});
  Json members = Json::array();
  for (const CommandDoc* member : commands().members(command.name)) members.push_back(member->name);
  return {{"name", command.name},         {"summary", command.summary},    {"usage", usage_of(command)},
          {"examples", command.examples}, {"options", std::move(options)}, {"commands", std::move(members)}};
}

}  // namespace

Verb verb() {
  return {"help", "print the help of a command", "  cermet help\n  cermet help run\n  cermet help bench op",
          [](Parser& parser) -> Action {
            const auto words = std::make_shared<std::vector<std::string>>();
            const auto all = std::make_shared<bool>(false);
            parser.option("COMMAND", *words, "a command; without it, the list of all");
            parser.flag("--all", *all, "with advanced options");
            return [words, all](Console& console) {
              const CommandDoc& command = command_named(*words);
              if (console.json()) return console.write_json(command_json(command));
              console.write(help_text(command, {help_width(), *all, is_coloured(STDOUT_FILENO)}));
            };
          }};
}

}  // namespace cermet::cli::help_verb
