// Super-kernels of a graph that has some, as its executable keeps them.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "base/pool_session.hpp"
#include "kernel/cuda/task.hpp"
#include "runtime/super_kernel/super_region.hpp"

namespace cermet {

struct SuperKernels {
  std::vector<SuperStep> steps;             ///< by step
  std::vector<SuperKernelOptions> options;  ///< by super-kernel of the graph
  SuperLimits limits;
  SuperFormation formation;                          ///< of the present plan
  bool reported = false;                             ///< what cannot join
  bool loss_reported = false;                        ///< that some region is slower than its launches
  std::vector<std::vector<cuda::Program>> programs;  ///< by step, of CUDA kernels
  std::unique_ptr<PoolSession> session;              ///< in which the CPU walks a region
  std::vector<ReadAhead> ahead;                      ///< by launch of the plan, on the CPU

  /// Forms the regions of a plan. Reports once what cannot join; `scope_of`: of a step.
  void form(const Plan& plan, const std::vector<SuperKernel>& of_graph,
            FunctionRef<std::string_view(std::size_t step)> scope_of) {
    form_regions(formation, plan, steps, of_graph, options, limits);
    if (reported || formation.breaks.empty()) return;
    report_breaks(formation, of_graph, scope_of);
    reported = true;  // warnings come once; an error every time
  }
  /// Whether the pool's threads may stay from run to run.
  bool holds_rows() const {
    return session && std::ranges::none_of(options, [](const auto& each) { return each.debug_sync_all; });
  }
};

}  // namespace cermet
