// What a compilation did, for reports: its graphs, the blocks with their kernels, and why values go through memory.
#pragma once

#include <string>
#include <vector>

#include "fuse/report.hpp"
#include "graph/rewrite/rule.hpp"
#include "runtime/compile.hpp"
#include "runtime/memory_plan.hpp"
#include "runtime/super_kernel/waits.hpp"
#include "select/select.hpp"

namespace cermet {

struct Compilation;

/// A launch, or a view, which is none.
struct BlockRecord {
  Choice choice;                ///< without a kernel for a view
  double modelled_seconds = 0;  ///< by the kernel's model, or where it has none by the device's limits; 0 of a view
  double least_seconds = 0;     ///< to move the bytes and to compute, by the device's limits
  Cost work;
};

/// A super-kernel of blocks that follow each other, as far as their programs say; a plan may break it further.
struct SuperKernelRecord {
  std::string name, options;
  std::size_t first_block = 0, last_block = 0;
  std::vector<std::size_t> collectives = {};  ///< its blocks in which ranks wait for each other
  std::vector<SuperWait> waits = {};          ///< which of its blocks wait for which, in their order
};

struct CompileRecord {
  FusionMode mode{};
  std::size_t nodes_before = 0;  ///< of the graph that was given
  Graph graph;                   ///< after rewriting
  std::vector<FusionGroup> groups;
  std::vector<std::int32_t> views;  ///< nodes that no step runs
  std::vector<BlockRecord> blocks;  ///< by group
  std::vector<RuleCount> rules;
  FusionReport report;  ///< groups, and from their number on views
  SymbolValues maximum;
  MemoryPlan memory;
  std::int64_t workspace_bytes = 0;
  std::vector<CompileStep> steps;
  std::vector<SuperKernelRecord> super_kernels = {};
  std::vector<std::string> super_breaks = {};  ///< "first breaks at layers.0 ...: reason; what to do"
};

CompileRecord record_of(const Compilation& compilation, std::size_t nodes_before, std::vector<CompileStep> steps);

}  // namespace cermet
