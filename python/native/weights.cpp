#include "weights.hpp"

#include "box.hpp"
#include "handle.hpp"

namespace cermet::python {
namespace {

/// create_weights(handle, device_type, device_index)
PyObject* create_weights(PyObject*, PyObject* args) {
  return guarded([&] {
    PyObject* handle = nullptr;
    int type = 0, index = 0;
    require_set(PyArg_ParseTuple(args, "Oii", &handle, &type, &index) != 0);
    auto made = std::make_shared<Weights>();
    made->device = {static_cast<DLDeviceType>(type), index};
    check(cermet_weights_create(Box<Handle>::get(handle)->handle, &made->weights));
    return Box<Weights>::make(std::move(made));
  });
}

/// set(name, tensor)
PyObject* set(PyObject* self, PyObject* args) {
  return guarded([&] {
    const char* name = nullptr;
    PyObject* tensor = nullptr;
    require_set(PyArg_ParseTuple(args, "sO", &name, &tensor) != 0);
    const auto of = Box<Weights>::get(self);
    Operand operand = operand_of(tensor, of->device, of->device.device_type == kDLCPU ? -1 : 1,
                                 {"weights", "tensor", of->tensors.size()});
    check(cermet_weights_set(of->weights, name, nullptr, operand.get()));
    of->tensors[name] = {std::move(operand), Ref::to(tensor)};
    Py_RETURN_NONE;
  });
}

PyObject* bytes(PyObject* self, PyObject*) {
  return guarded([&] { return PyLong_FromSize_t(cermet_weights_bytes(Box<Weights>::get(self)->weights)); });
}

PyMethodDef methods[] = {{"set", set, METH_VARARGS, "set(name, tensor)."},
                         {"bytes", bytes, METH_NOARGS, "Memory of what was packed, computed or copied."},
                         {}};
PyMethodDef functions[] = {{"create_weights", create_weights, METH_VARARGS, "See cermet.Weights."}, {}};

}  // namespace

void add_weights(PyObject* module) {
  Box<Weights>::add_to(module, methods);
  require_set(PyModule_AddFunctions(module, functions) == 0);
}

}  // namespace cermet::python
