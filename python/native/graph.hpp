// Graphs that are built from Python.
#pragma once

#include <cermet/graph.h>

#include <map>
#include <mutex>
#include <string>

#include "operand.hpp"

namespace cermet::python {

struct Graph {
  static constexpr const char* python_name = "Graph";
  static constexpr const char* what = "graph";

  /// A constant's tensor, whose memory is read by every compilation.
  struct Constant {
    Operand operand;
    Ref object;
  };
  std::string name;
  DLDevice device{kDLCPU, 0};
  bool computes = true;
  std::map<std::string, Constant> constants;
  cermet_graph* graph = nullptr;
  std::mutex mutex;

  Graph() = default;
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph() { cermet_graph_destroy(graph); }
};

/// (name, dtype, shape): of the shape, numbers, and texts of sizes that runs give.
Ref description_of(const cermet_value_info& info);

/// Adds Graph and its constructors to the module.
void add_graph(PyObject* module);

}  // namespace cermet::python
