// Whether ranks wait for each other in an operator.
#pragma once

#include "op/problem.hpp"

namespace cermet {

/// Whether an operator has the operand of one of several ranks, which a communicator joins.
inline bool spans_ranks(const Problem& problem) { return problem.attributes.find("ranks") && problem.attributes.integer("ranks") > 1; }

}  // namespace cermet
