// Compiled graphs.
#pragma once

#include "python.hpp"

namespace cermet::python {

/// Adds Session and its constructor to the module.
void add_session(PyObject* module);

}  // namespace cermet::python
