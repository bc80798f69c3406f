// ONNX models.
#pragma once

#include "python.hpp"

namespace cermet::python {

/// Adds Onnx and its constructor to the module.
void add_onnx(PyObject* module);

}  // namespace cermet::python
