// Completion scripts for shells, from the table of commands.
#pragma once

#include <string>

#include "cli/ui/command.hpp"

namespace cermet::cli {

std::string bash_completion();
std::string zsh_completion();
std::string fish_completion();

/// What an option's value is completed by.
enum class CompletionKind { words, file, folder, other };
CompletionKind completion_kind(const OptionDoc& option);
/// The first sentence of an option's help, as short as completions show it.
std::string short_help(const OptionDoc& option);

}  // namespace cermet::cli
