// A device and its threads.
#pragma once

#include "python.hpp"

namespace cermet::python {

struct Handle {
  static constexpr const char* python_name = "Handle";
  static constexpr const char* what = "handle";
  cermet_handle* handle = nullptr;

  Handle() = default;
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() { cermet_destroy(handle); }
};

/// Adds Handle and its constructor to the module.
void add_handle(PyObject* module);

}  // namespace cermet::python
