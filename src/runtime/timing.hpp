// What a run's launches took, and what work they did.
#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <vector>

#include "runtime/executable.hpp"

namespace cermet {

struct Timing {
  bool on = false;
  std::chrono::steady_clock::time_point started;    ///< of the last run
  std::vector<LaunchTime> launches;                 ///< of the last run, where it was timed
  std::vector<TaskTime> tasks;                      ///< of the last run on the CPU, where a super-kernel has profile=1
  std::vector<Cost> costs;                          ///< by step, at the present symbols; empty until they are needed
  std::vector<std::unique_ptr<DeviceEvent>> marks;  ///< of timed runs: one before each step and one after it

  void note_costs(std::span<const StepInfo> infos, const SymbolValues& symbols);
  /// Of a grouped product, notes which groups have rows: memory may be reused by the next step. On a device the copy is
  /// enqueued. `operands`: of the step; `steps`: how many there are.
  void keep_offsets(std::size_t step, std::size_t steps, const Region& region, std::span<const TensorView> operands,
                    Stream* stream);
  /// The cost of a step that has run: only the weights of groups with rows were read.
  Cost work_of(std::size_t step, const Region& region, const SymbolValues& symbols) const;
  void add(std::size_t step, StepInfo& info, const SymbolValues& symbols, double start, double seconds);

 private:
  std::vector<OwnedTensor>
      offsets_;  ///< by step of a timed run: where the groups of a grouped product begin; empty for others
};

}  // namespace cermet
