#include "handle.hpp"

#include "box.hpp"

namespace cermet::python {
namespace {

/// create_handle(device, threads)
PyObject* create_handle(PyObject*, PyObject* args) {
  return guarded([&] {
    const char* device = nullptr;
    int threads = 0;
    require_set(PyArg_ParseTuple(args, "si", &device, &threads) != 0);
    auto made = std::make_shared<Handle>();
    cermet_status status = CERMET_OK;
    {
      const Released released;
      status = cermet_create(device, threads, &made->handle);
    }
    check(status);
    return Box<Handle>::make(std::move(made));
  });
}

/// (description, threads, whether it computes)
PyObject* describe(PyObject* self, PyObject*) {
  return guarded([&] {
    const auto handle = Box<Handle>::get(self);
    return Py_BuildValue("(siN)", cermet_device(handle->handle), static_cast<int>(cermet_threads(handle->handle)),
                         PyBool_FromLong(cermet_computes(handle->handle)));
  });
}

PyMethodDef methods[] = {{"describe", describe, METH_NOARGS, "(description, threads, whether it computes)."}, {}};
PyMethodDef functions[] = {{"create_handle", create_handle, METH_VARARGS, "create_handle(device, threads)."}, {}};

}  // namespace

void add_handle(PyObject* module) {
  Box<Handle>::add_to(module, methods);
  require_set(PyModule_AddFunctions(module, functions) == 0);
}

}  // namespace cermet::python
