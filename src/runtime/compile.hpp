// From a graph to something that runs. compile.cpp is the flat list of steps, which are below step/; only they see
// every stage.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "graph/pass_runner.hpp"
#include "kernel/communicator.hpp"
#include "runtime/executable.hpp"
#include "runtime/fusion_options.hpp"

namespace cermet {

class Tuning;

struct CompileOptions {
  SymbolValues maximum;           ///< largest value of each symbol: sizes the arena and picks kernels
  std::vector<std::string> skip;  ///< names of optional steps to leave out
  std::string dump_after = {};    ///< step after which the graph's text goes to the log, at level info; empty for none
  DeviceQueue queue =
      {};  ///< for a device with a target: its stream and programs, which must outlive the executable; null elsewhere
  bool capture = true;  ///< replay a captured graph where a run has the same symbols and operands as an earlier one
  FusionOptions fusion = {};
  std::vector<RankGroup> groups =
      {};  ///< of nodes that communicate (attributes `ranks` and `group`); must outlive the executable
  const Tuning* tuning = nullptr;  ///< measured choices of kernels (select/tuning.hpp); null: the process's
};

/// What a compile step did and how long it took: load times come from it, and tests read it.
using CompileStep = PassReport;

/// A step of the list, for readers: its name, what it does, and whether it may be skipped.
struct CompileStepInfo {
  std::string_view name, summary;
  bool optional;
};
/// The steps in the order in which compile() takes them.
std::vector<CompileStepInfo> compile_steps();

/// A compilation whose kernels are chosen: the rest is reading weights and compiling programs, which several graphs may
/// do at once.
class StartedCompile {
 public:
  /// Throws what compile() throws.
  StartedCompile(Graph graph, Device& device, WeightStore& weights, ThreadPool& pool, CompileOptions options);
  StartedCompile(StartedCompile&&) noexcept;
  ~StartedCompile();
  /// Programs of the chosen kernels: what is prepared meanwhile in the store of options.queue, finish() finds there.
  std::vector<cuda::Program> programs() const;
  /// Once. Adds what the steps did to the report.
  Executable finish(std::vector<CompileStep>* report = nullptr);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Compiles a graph for a device; the weight store and the pool must outlive the result. Throws Error naming node and
/// reason where no kernel fits, a symbol without a maximum, or a rule that the graph breaks. On the null device no
/// weight is read.
Executable compile(Graph graph, Device& device, WeightStore& weights, ThreadPool& pool, const CompileOptions& options,
                   std::vector<CompileStep>* report = nullptr);

}  // namespace cermet
