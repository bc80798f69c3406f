// The one runner of a flat list of steps: names, times, switches off, verifies and dumps each of them.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace cermet {

/// What a step spends its time on.
enum class PassKind : std::uint8_t { graph, weights, programs };

/// One step over a state that the list's owner defines.
template <class State>
struct Pass {
  std::string_view name;
  std::string_view summary;    ///< one line for readers
  bool optional = false;       ///< may be switched off
  std::string (*run)(State&);  ///< does the step; returns a note about what it did
  PassKind kind = PassKind::graph;
};

/// What a step did.
struct PassReport {
  std::string name;
  PassKind kind = PassKind::graph;
  double seconds = 0;            ///< of the step alone, without its verification
  std::string note;              ///< "412 nodes", "arena 3.1 MiB (sum of values 40.2 MiB)"
  double processor_seconds = 0;  ///< of the process, which other processes do not lengthen
};

/// How a list is run. Names that no step has are errors.
struct PassOptions {
  std::vector<std::string> skip;                            ///< optional steps to leave out
  std::string dump_after;                                   ///< step after which `dump` is called; empty for none
  std::function<void(std::string_view step)> verify_after;  ///< throws when the state broke
  std::function<void(std::string_view step)> dump;
};

/// Runs the steps in order, or `count` of them from `first` on. Throws Error(invalid_argument) for a wrong name in the
/// options, and whatever a step throws.
template <class State>
std::vector<PassReport> run_passes(std::span<const Pass<State>> passes, State& state, const PassOptions& options,
                                   std::size_t first = 0, std::size_t count = std::dynamic_extent) {
  const auto find = [&](std::string_view name) {
    return std::find_if(passes.begin(), passes.end(), [&](const auto& p) { return p.name == name; });
  };
  for (const std::string& name : options.skip) {
    const auto pass = find(name);
    require(pass != passes.end(), "step '{}' to skip: expected the name of a step, found none of that name", name);
    require(pass->optional, "step '{}' to skip: expected an optional step, found one that the result needs", name);
  }
  require(options.dump_after.empty() || find(options.dump_after) != passes.end(),
          "step '{}' to dump after: expected the name of a step, found none of that name", options.dump_after);
  std::vector<PassReport> reports;
  for (const Pass<State>& pass : passes.subspan(first, count)) {
    if (std::find(options.skip.begin(), options.skip.end(), pass.name) != options.skip.end()) continue;
    const auto start = std::chrono::steady_clock::now();
    const std::clock_t processor_start = std::clock();
    std::string note = pass.run(state);
    reports.push_back({std::string(pass.name), pass.kind,
                       std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), std::move(note),
                       static_cast<double>(std::clock() - processor_start) / CLOCKS_PER_SEC});
    if (options.verify_after) options.verify_after(pass.name);
    if (pass.name == options.dump_after && options.dump) options.dump(pass.name);
  }
  return reports;
}

}  // namespace cermet
