// Groups that moe_permute sorts pairs of token and expert into, of its attributes.
#pragma once

#include "op/schema/operator.hpp"

namespace cermet {

struct ExpertGroups {
  std::int64_t groups, first;
  bool rest;

  explicit ExpertGroups(const Attributes& a)
      : groups(a.integer("experts")), first(a.integer("first")), rest(a.flag("rest")) {}

  /// Groups that are one expert.
  std::int64_t experts() const { return rest ? groups - 1 : groups; }
  /// Group of an expert. Throws Error where it has none.
  std::int64_t of(std::int64_t id) const;
};

}  // namespace cermet
