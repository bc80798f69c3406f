// The rules of algebra, best first.
#pragma once

#include <unordered_map>

#include "graph/rewrite/cost.hpp"
#include "graph/rewrite/rule.hpp"

namespace cermet {

using RulesByAnchor = std::unordered_map<OpKind, std::vector<std::size_t>>;

/// Applies rules of algebra until none saves work; `sizes` are those at which costs are compared, `times` counts
/// applications by rule.
void apply_algebra(GraphEditor& editor, std::span<const Rule> rules, const RulesByAnchor& by_anchor,
                   const RewriteOptions& options, const SymbolValues& sizes, std::vector<std::size_t>& times);

}  // namespace cermet
