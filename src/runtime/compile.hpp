// From a graph to something that runs. compile.cpp is the flat list of steps; only it sees every stage.
#pragma once

#include <string>
#include <vector>

#include "runtime/executable.hpp"

namespace cermet {

struct CompileOptions {
  SymbolValues maximum;           ///< largest value of each symbol: sizes the arena and picks kernels
  std::vector<std::string> skip;  ///< names of optional steps to leave out
  std::string dump_after;         ///< step after which the graph's text goes to the log; empty for none
};

/// What a compile step did: shown by `cermet inspect` and in tests.
struct CompileStep {
  std::string name;
  double seconds = 0;
  std::string note;  ///< "412 nodes", "arena 3.1 MiB (sum of values 40.2 MiB)"
};

/// Compiles a graph for a device. Throws Error naming node and reason where no kernel fits.
Executable compile(Graph graph, Device& device, WeightStore& weights, ThreadPool& pool, const CompileOptions& options,
                   std::vector<CompileStep>* report = nullptr);

}  // namespace cermet
