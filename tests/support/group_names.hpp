// A plan as a line of text.
#pragma once

#include <gtest/gtest.h>

#include "fuse/plan.hpp"
#include "op/schema/operator.hpp"

namespace cermet {

/// Groups in their order as "linear+add relu"; each is expected to read what earlier ones made.
inline std::string names_of(const std::vector<FusionGroup>& groups, const Graph& graph) {
  std::vector<bool> made(graph.values().size());
  std::string text;
  for (const FusionGroup& group : groups) {
    std::string names;
    for (const std::int32_t n : group.nodes)
      names +=
          fmt::format("{}{}", names.empty() ? "" : "+", definition(graph.nodes()[static_cast<std::size_t>(n)].op).name);
    for (const ValueId id : group.operands)
      EXPECT_TRUE(!id || graph.value(id).producer < 0 || made[id.at()])
          << graph.value(id).name << " is read before it is made";
    for (const ValueId id : group.results) made[id.at()] = true;
    text += fmt::format("{}{}", text.empty() ? "" : " ", names);
  }
  return text;
}

}  // namespace cermet
