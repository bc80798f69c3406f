// What somebody meant who typed a command or an option that there is not.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/ui/command.hpp"

namespace cermet::cli {

/// The candidate that is nearest by insertions, deletions, replacements and swaps of neighbours; "" where none is near.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);
/// "; did you mean run?", also for names that other tools have; "" where nothing is near.
std::string command_hint(std::string_view word, std::string_view group);
/// "; did you mean '--new-tokens'?" among the options of `command`.
std::string option_hint(std::string_view word, const CommandDoc& command);
/// Whether other tools have an option of one dash and several letters such as -ngl, which reads as -n here.
bool is_foreign_option(std::string_view word);

}  // namespace cermet::cli
