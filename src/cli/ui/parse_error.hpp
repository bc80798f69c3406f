// What the library that parses command lines reports, in the words of other mistakes: what was expected, and what was
// found.
#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

#include "cli/ui/command.hpp"

namespace cermet::cli {

/// One line for `error`, which parsing `app` threw over `arguments`, with the usage of `command`, the verb as far as it
/// was understood.
std::string parse_error_text(const CLI::App& app, const CommandDoc& command, const CLI::ParseError& error,
                             const std::vector<std::string>& arguments);

}  // namespace cermet::cli
