#include "cli/ui/command.hpp"

#include <fmt/format.h>

namespace cermet::cli {

CommandDoc& CommandTable::add(CommandDoc command) {
  return *commands_.emplace_back(std::make_unique<CommandDoc>(std::move(command)));
}

CommandDoc* CommandTable::find(std::string_view name) {
  for (const auto& command : commands_)
    if (command->name == name) return command.get();
  return nullptr;
}

const CommandDoc* CommandTable::find(std::string_view name) const {
  return const_cast<CommandTable&>(*this).find(name);
}

std::vector<const CommandDoc*> CommandTable::members(std::string_view name) const {
  std::vector<const CommandDoc*> list;
  for (const auto& command : commands_) {
    if (command->is_internal || command->name.empty()) continue;
    const std::size_t space = command->name.find(' ');
    const std::string_view parent =
        space == std::string::npos ? std::string_view() : std::string_view(command->name).substr(0, space);
    if (parent == name) list.push_back(command.get());
  }
  return list;
}

CommandTable& commands() {
  static CommandTable table;
  return table;
}

std::string spoken_name(const CommandDoc& command) {
  return command.name.empty() ? "cermet" : "cermet " + command.name;
}

std::string usage_of(const CommandDoc& command) {
  std::string text = spoken_name(command);
  if (!command.is_verb) return text + " <COMMAND> [OPTIONS]";
  text += " [OPTIONS]";
  for (const OptionDoc& option : command.options)
    if (option.is_positional)
      text += fmt::format(" {}{}{}{}", option.is_required ? "" : "[", option.metavar, option.is_repeated ? "..." : "",
                          option.is_required ? "" : "]");
  return text;
}

}  // namespace cermet::cli
