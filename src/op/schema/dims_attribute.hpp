// An attribute that lists dimensions as text, so that they may depend on symbols: "B*T", "min(T,8)", "16".
#pragma once

#include "base/dim.hpp"
#include "op/schema/problem.hpp"

namespace cermet {

/// The dimensions of a strings attribute. Throws Error naming the attribute where an entry is no dimension, or a
/// negative number.
Dims dims_attribute(const Problem& problem, std::string_view name);

}  // namespace cermet
