// The cases that a kernel from outside is checked on: its operator's own, and those whose sizes its manifest lists.
#pragma once

#include <vector>

#include "foreign/manifest.hpp"
#include "op/schema/case.hpp"

namespace cermet::foreign {

/// A case for each combination of the manifest's element types with each of its lists of sizes, after the operator's
/// own.
std::vector<Case> cases_of(const Manifest& manifest);

}  // namespace cermet::foreign
