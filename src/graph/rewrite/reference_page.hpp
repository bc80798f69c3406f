// The documentation page of all rewrite rules, generated from their rows.
#pragma once

#include <string>

namespace cermet {

/// Markdown: for every class a table of rules with rounding class and side condition. docs/reference/rules.md holds it;
/// a test keeps the two equal.
std::string rule_reference_markdown();

}  // namespace cermet
