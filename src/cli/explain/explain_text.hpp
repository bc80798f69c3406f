// What `cermet explain --text` prints.
#pragma once

#include <string>

#include "cli/ui/console.hpp"

namespace cermet::cli {

/// A graph of explain's data: a line for each block, repeats once, then totals beside those of the plan that it is
/// compared with, rules, and reasons by count.
std::string explain_text(const Json& graph);

}  // namespace cermet::cli
