// The documentation page of all operators, generated from their schemas.
#pragma once

#include <string>

namespace cermet {

/// Markdown: a table of contents by category, then for every operator summary, semantics, operands with mapping types,
/// results and attributes. docs/reference/operators.md holds it; a test keeps the two equal.
std::string operator_reference_markdown();

}  // namespace cermet
