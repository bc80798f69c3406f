// cermet_get_op and cermet_call for Python's tensors.
#pragma once

#include <cermet/get_op.h>

#include <mutex>
#include <vector>

#include "operand.hpp"

namespace cermet::python {

/// An operator with the kernels that it chose so far. Calls of several threads wait for one another.
struct Operator {
  static constexpr const char* python_name = "Operator";
  static constexpr const char* what = "operator";

  std::string name;
  DLDevice device{kDLCPU, 0};
  bool computes = true;          ///< the device does
  bool gives_tuple = false;      ///< also of one result: the operator has a variable number of them
  unsigned long long state = 0;  ///< bits of inputs that calls update
  unsigned long long may_lie_transposed = 0;
  std::vector<Operand> constants;  ///< by input; their memory is read until the callable is destroyed
  std::vector<Ref> kept;           ///< the constants' objects
  cermet_callable* callable = nullptr;
  std::mutex mutex;

  Operator() = default;
  Operator(const Operator&) = delete;
  Operator& operator=(const Operator&) = delete;
  ~Operator() { cermet_callable_destroy(callable); }
};

/// Adds Operator and get_op to the module.
void add_operator(PyObject* module);

}  // namespace cermet::python
