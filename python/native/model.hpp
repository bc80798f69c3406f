// Models that generate text, and batches of requests on them.
#pragma once

#include "python.hpp"

namespace cermet::python {

/// Adds Model and its constructor to the module.
void add_model(PyObject* module);
/// Adds Batch and its constructor to the module.
void add_batch(PyObject* module);

}  // namespace cermet::python
