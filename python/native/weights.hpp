// Weights by name that sessions share.
#pragma once

#include <cermet/graph.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "operand.hpp"

namespace cermet::python {

struct Weights {
  static constexpr const char* python_name = "Weights";
  static constexpr const char* what = "weights";
  DLDevice device{kDLCPU, 0};
  cermet_weights* weights = nullptr;
  std::map<std::string, std::pair<Operand, Ref>> tensors;  ///< and the objects that they are of
  std::vector<std::shared_ptr<void>> graphs;               ///< whose constants it may read
  std::mutex mutex;

  Weights() = default;
  Weights(const Weights&) = delete;
  Weights& operator=(const Weights&) = delete;
  ~Weights() { cermet_weights_destroy(weights); }
};

/// Adds Weights and its constructor to the module.
void add_weights(PyObject* module);

}  // namespace cermet::python
