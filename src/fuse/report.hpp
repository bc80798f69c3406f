// Why two groups of a plan are not one: found after planning, for those who ask.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fuse/mode.hpp"
#include "fuse/plan.hpp"

namespace cermet {

/// In the order in which they are looked for.
enum class WhyApart : std::uint8_t {
  view,         ///< one of them is no launch: its result is an operand's memory seen with other dimensions
  mode,         ///< the mode joins nothing of the kind
  border,       ///< one of them is in a super-kernel and the other is not, or in another
  limit,        ///< together they would have more nodes than a group may
  overwritten,  ///< memory that one of them reads is updated before the other runs
  cycle,        ///< what runs between them reads one and is read by the other
  table,        ///< mapping types, in a mode that goes by them
  result,       ///< the value between them is a result of the graph, and no kernel takes both
  readers,      ///< other nodes read the value, and no kernel takes both
  kernels,      ///< no kernel takes both
  order,        ///< a kernel would take both, but one of them had joined others before
};
/// "kernels", and a few words for readers.
std::string_view name_of(WhyApart why);
std::string_view summary_of(WhyApart why);

/// A value that goes through memory from one group to another.
struct UnfusedEdge {
  std::int32_t producer = -1, consumer = -1;  ///< groups
  ValueId value;
  WhyApart why{};
  std::string text;  ///< "read by 2 other nodes; attention.flash: computes attention alone"
};
struct FusionReport {
  std::vector<UnfusedEdge> edges;  ///< by consumer, then by value
};

struct FusionReportQuestions {
  FusionMode mode = FusionMode::full;
  const Target* target = nullptr;
  std::span<const std::int32_t> views;  ///< nodes that no step runs, rising; their groups are not in the plan
  FunctionRef<std::string(const Region&)> declines;  ///< every kernel's reason; empty where one takes the region
};

/// Takes time in proportion to the edges between groups and to that of the answers.
FusionReport explain_fusion(const Graph& graph, const SymbolValues& maximum, std::span<const FusionGroup> groups,
                            const FusionReportQuestions& questions);

}  // namespace cermet
