// Text that a verb writes to a file which its user names: a page, a plot, a table.
#pragma once

#include <string>
#include <string_view>

#include "cli/ui/console.hpp"

namespace cermet::cli {

/// Throws Error naming the file unless it could be written now: before work that takes long. "-" is standard output,
/// which --json has to itself.
void check_text_output(const Console& console, const std::string& file);
/// Writes all of it or nothing (io/output_target.hpp), or prints it where the file is "-". Returns whether it went into
/// a file.
bool write_text_output(Console& console, const std::string& file, std::string_view text);

}  // namespace cermet::cli
