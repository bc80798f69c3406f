// How long the candidates for a region take as they are deployed, and whether they compute what the choice without
// tuning computes.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "jit/program_store.hpp"
#include "select/bound_op.hpp"
#include "select/tune/operand_sets.hpp"

namespace cermet {

/// Seconds of a launch.
struct Timing {
  double median = 0;
  double spread = 0;      ///< half the distance between the quartiles
  bool given_up = false;  ///< it was stopped early; the other figures are of what was measured until then
};

/// How the times of two candidates compare, measured in turn: A B A B.
struct PairedTiming {
  Timing first, second;
  double ratio = 1;  ///< median of second / first
  double noise = 0;  ///< what the ratio may be off by
};

struct MeterOptions {
  OperandValues values = {};
  double seconds = 0.01;      ///< to spend on timed launches of a candidate
  void (*between)() = [] {};  ///< called between launches; may throw
};

/// On a GPU, replays of a captured graph are timed, with operands in rotation past the L2; on a CPU launches on threads
/// that stay on their cores, with operands in rotation past the last cache. Not to be used by two threads.
class Meter {
 public:
  /// Kernels are bound to `region`, which may have symbols, and launched with the operands of `sized`, the same region
  /// with constant dimensions. Both, the pool and the queue must outlive the object.
  Meter(const Region& region, const Region& sized, ThreadPool& pool, const DeviceQueue& queue,
        const MeterOptions& options);
  ~Meter();

  /// Runs a choice and keeps its results as what others must compute.
  void expect(const Choice& choice);
  /// What is wrong with a choice's results, beside those: output, element, both values and the bound. Empty where all
  /// agree. Of large results a sample of pieces is compared.
  std::string check(const Choice& choice);
  /// Times a choice; stops early where one launch takes more than `hopeless` seconds, unless that is 0.
  Timing time(const Choice& choice, double hopeless = 0);
  PairedTiming compare(const Choice& first, const Choice& second, double seconds);

 private:
  struct Ready;
  struct Timer;
  Ready& ready(const Choice& choice);
  std::vector<std::vector<double>> results_of(const Choice& choice);

  const Region &region_, &sized_;
  ThreadPool& pool_;
  DeviceQueue queue_;
  MeterOptions options_;
  std::map<std::string, std::unique_ptr<OperandSets>> sets_;  ///< by the layouts of constants
  std::unique_ptr<Ready> ready_;
  std::vector<std::vector<double>> expected_;  ///< of each result, the elements that are compared
};

}  // namespace cermet
