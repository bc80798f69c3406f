// The reference page of super-kernels, from the rows that the library itself reads.
#pragma once

#include <string>

namespace cermet {

/// Markdown: a table of the options and one of the reasons. docs/reference/super-kernels.md holds it; a test keeps the
/// two equal.
std::string super_kernel_reference_markdown();

}  // namespace cermet
