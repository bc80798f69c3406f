// How much a compilation changes a graph, and what it says about that.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "fuse/mode.hpp"
#include "op/schema/region.hpp"
#include "runtime/super_kernel/mark.hpp"

namespace cermet {

struct Choice;
struct CompileRecord;

/// One application of a rewrite rule, or one block of several nodes.
struct Change {
  std::string rule;                  ///< empty for a block
  std::string text;                  ///< where the rule was applied; the block's operators
  std::vector<std::string> results;  ///< of a block: names of the values that it makes
};
/// The first changes that may be made, over all graphs that are compiled with it: `cermet bisect` finds the one that
/// breaks a result.
struct Changes {
  std::int64_t limit = std::numeric_limits<std::int64_t>::max();
  std::vector<Change> made;
  std::vector<std::string> keep =
      {};  ///< values that become results of the graph that has them, under their names, where they leave their blocks
  std::int64_t left() const { return limit - static_cast<std::int64_t>(made.size()); }
};

struct FusionOptions {
  FusionMode mode = FusionMode::full;
  Rounding rounding = Rounding::strict;           ///< of f16 and bf16 values that a block keeps to itself, and of rules
  Changes* changes = nullptr;                     ///< limits and lists what is done; null: everything, and no list
  std::vector<CompileRecord>* records = nullptr;  ///< one more for each graph that is compiled, for reports; null: none
  const std::vector<Rule>* rules = nullptr;       ///< in place of rewrite_rules(): tests bring wrong ones
  SuperKernelSelection super_kernel = {};         ///< marks beside those that the graph has
  std::function<void(const Region&, Choice&)> choose =
      {};  ///< has the last word on the kernel of every step; empty: none
};

}  // namespace cermet
