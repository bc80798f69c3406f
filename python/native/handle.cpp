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

/// Python's functions behind an allocator. They stay as long as the process, since sessions may free memory until then.
struct PythonAllocator {
  PyObject *allocate, *release;
};

void* allocate_by(std::size_t bytes, void* user) {
  const PyGILState_STATE state = PyGILState_Ensure();
  PyObject* const made =
      PyObject_CallFunction(static_cast<PythonAllocator*>(user)->allocate, "n", static_cast<Py_ssize_t>(bytes));
  void* const memory = made && made != Py_None ? PyLong_AsVoidPtr(made) : nullptr;
  Py_XDECREF(made);
  if (PyErr_Occurred()) PyErr_WriteUnraisable(static_cast<PythonAllocator*>(user)->allocate);
  PyGILState_Release(state);
  return memory;
}

void release_by(void* memory, std::size_t bytes, void* user) {
  if (!Py_IsInitialized()) return;
  const PyGILState_STATE state = PyGILState_Ensure();
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);  // of what is on its way meanwhile
  PyObject* const address = PyLong_FromVoidPtr(memory);
  PyObject* const done = address ? PyObject_CallFunction(static_cast<PythonAllocator*>(user)->release, "On", address,
                                                         static_cast<Py_ssize_t>(bytes))
                                 : nullptr;
  Py_XDECREF(address);
  Py_XDECREF(done);
  if (!done) PyErr_WriteUnraisable(static_cast<PythonAllocator*>(user)->release);
  PyErr_Restore(type, value, trace);
  PyGILState_Release(state);
}

/// set_allocator(allocate, release), or None for both
PyObject* set_allocator(PyObject* self, PyObject* args) {
  return guarded([&] {
    PyObject *allocate = nullptr, *release = nullptr;
    require_set(PyArg_ParseTuple(args, "OO", &allocate, &release) != 0);
    const auto handle = Box<Handle>::get(self);
    if (allocate == Py_None) {
      check(cermet_handle_set_allocator(handle->handle, nullptr, nullptr, nullptr));
    } else {
      Py_INCREF(allocate);
      Py_INCREF(release);
      check(
          cermet_handle_set_allocator(handle->handle, allocate_by, release_by, new PythonAllocator{allocate, release}));
    }
    Py_RETURN_NONE;
  });
}

PyMethodDef methods[] = {{"set_allocator", set_allocator, METH_VARARGS, "set_allocator(allocate, release)."},
                         {"describe", describe, METH_NOARGS, "(description, threads, whether it computes)."},
                         {}};
PyMethodDef functions[] = {{"create_handle", create_handle, METH_VARARGS, "create_handle(device, threads)."}, {}};

}  // namespace

void add_handle(PyObject* module) {
  Box<Handle>::add_to(module, methods);
  require_set(PyModule_AddFunctions(module, functions) == 0);
}

}  // namespace cermet::python
