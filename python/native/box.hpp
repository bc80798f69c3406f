// A C++ value as a Python object. It may be closed early; a call that is under way keeps it until it returns.
#pragma once

#include <memory>

#include "python.hpp"

namespace cermet::python {

/// T has `static constexpr const char* python_name`, "Model", and `what`, "model", for messages.
template <class T>
struct Box {
  PyObject_HEAD std::shared_ptr<T> value;

  inline static PyTypeObject* type = nullptr;

  static PyObject* make(std::shared_ptr<T> value) {
    Box* box = PyObject_New(Box, type);
    require_set(box != nullptr);
    new (&box->value) std::shared_ptr<T>(std::move(value));
    return reinterpret_cast<PyObject*>(box);
  }
  /// The value; throws where the object was closed or is another.
  static std::shared_ptr<T> get(PyObject* object) {
    if (!PyObject_TypeCheck(object, type)) {
      PyErr_Format(PyExc_TypeError, "expected cermet._native.%s, found %R", T::python_name, object);
      throw ErrorIsSet();
    }
    auto value = reinterpret_cast<Box*>(object)->value;
    if (!value)
      raise(CERMET_INVALID_ARGUMENT, std::string(T::what) + ": expected one that is open, found one that was closed");
    return value;
  }

  static void dealloc(PyObject* object) {
    PyTypeObject* of = Py_TYPE(object);
    std::destroy_at(&reinterpret_cast<Box*>(object)->value);
    PyObject_Free(object);
    Py_DECREF(of);
  }
  static PyObject* close(PyObject* object, PyObject*) {
    const auto closed = std::move(reinterpret_cast<Box*>(object)->value);
    Py_RETURN_NONE;
  }

  /// Adds the type to the module. `methods` ends in an empty row and lives as long as the module.
  static void add_to(PyObject* module, PyMethodDef* methods, std::initializer_list<PyType_Slot> more = {}) {
    PyType_Slot slots[8] = {{Py_tp_dealloc, reinterpret_cast<void*>(dealloc)}, {Py_tp_methods, methods}};
    std::size_t count = 2;
    for (const PyType_Slot& slot : more) slots[count++] = slot;
    const std::string name = std::string("cermet._native.") + T::python_name;
    // The name is copied by PyType_FromSpec from Python 3.11 on; before, it must stay.
    static const std::string kept = name;
    PyType_Spec spec{kept.c_str(), sizeof(Box), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
    Ref made(PyType_FromSpec(&spec));
    type = reinterpret_cast<PyTypeObject*>(made.get());
    require_set(PyModule_AddObjectRef(module, T::python_name, made.get()) == 0);
    made.release();  // for as long as the process
  }
};

}  // namespace cermet::python
