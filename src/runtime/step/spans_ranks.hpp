// Whether ranks wait for each other in an operator.
#pragma once

#include <algorithm>

#include "kernel/communicator.hpp"
#include "runtime/step/compilation.hpp"

namespace cermet {

/// Whether an operator has the operand of one of several ranks, which a communicator joins.
inline bool spans_ranks(const Problem& problem) {
  return problem.attributes.find("ranks") && problem.attributes.integer("ranks") > 1;
}

/// Whether the devices of an operator's ranks address each other's memory. Where nothing computes, no group needs to be
/// given.
inline bool has_peer_memory(const Compilation& c, const Problem& problem) {
  if (!c.device.computes()) return true;
  const auto group = std::ranges::find(c.options.groups, problem.attributes.text("group"), &RankGroup::name);
  return group != c.options.groups.end() && group->communicator->peer_memory() != nullptr;
}

}  // namespace cermet
