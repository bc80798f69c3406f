// The text of --help, from the table of commands.
#pragma once

#include <string>
#include <string_view>

#include "cli/ui/command.hpp"

namespace cermet::cli {

struct HelpStyle {
  std::size_t width = 100;   ///< columns
  bool is_all = false;       ///< advanced options, too
  bool is_coloured = false;  ///< headings in bold
};

/// Columns of the terminal that standard output is, or those of COLUMNS; at most 100.
std::size_t help_width();
/// Help of cermet, of a group or of a verb.
std::string help_text(const CommandDoc& command, const HelpStyle& style);
/// Text broken at spaces into lines of at most `width` columns; all but the first after `indent` spaces.
std::string wrapped_text(std::string_view text, std::size_t indent, std::size_t width);
/// "Exit codes ..", one code a line.
std::string exit_codes_text();

}  // namespace cermet::cli
