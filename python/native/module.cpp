// cermet._native: the C interface for the Python package. Objects here are thin; cermet/*.py is what users see.
#include "box.hpp"
#include "graph.hpp"
#include "handle.hpp"
#include "model.hpp"
#include "onnx.hpp"
#include "operator.hpp"
#include "session.hpp"
#include "weights.hpp"

namespace cermet::python {
namespace {

PyObject* version(PyObject*, PyObject*) { return PyUnicode_FromString(cermet_version()); }

PyObject* op_names(PyObject*, PyObject*) {
  return guarded([&] {
    Ref names(PyTuple_New(static_cast<Py_ssize_t>(cermet_op_count())));
    for (std::size_t i = 0; i < cermet_op_count(); ++i)
      require_set(PyTuple_SetItem(names.get(), static_cast<Py_ssize_t>(i), text(cermet_op_name(i)).release()) == 0);
    return names.release();
  });
}

/// op_schema(name): JSON
PyObject* op_schema(PyObject*, PyObject* args) {
  return guarded([&] {
    const char* name = nullptr;
    require_set(PyArg_ParseTuple(args, "s", &name) != 0);
    const char* schema = cermet_op_schema(name);
    if (!schema) raise(CERMET_INVALID_ARGUMENT, last_message());
    return text(schema).release();
  });
}

PyObject* option_rows(PyObject*, PyObject*) { return PyUnicode_FromString(cermet_option_rows()); }

PyMethodDef functions[] = {{"version", version, METH_NOARGS, "Version of the library."},
                           {"op_names", op_names, METH_NOARGS, "Names of all operators."},
                           {"op_schema", op_schema, METH_VARARGS, "op_schema(name): JSON."},
                           {"option_rows", option_rows, METH_NOARGS, "Options of models and of generation: JSON."},
                           {}};
PyModuleDef definition{PyModuleDef_HEAD_INIT,
                       "cermet._native",
                       "Cermet's C interface.",
                       -1,
                       functions,
                       nullptr,
                       nullptr,
                       nullptr,
                       nullptr};

}  // namespace

void raise(cermet_status status, const std::string& message) {
  const Ref code(PyLong_FromLong(status)), words = text(message);
  const Ref error(PyObject_CallFunctionObjArgs(bridge("error_of"), code.get(), words.get(), nullptr));
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.get())), error.get());
  throw ErrorIsSet();
}

PyObject* interned(const char* text) { return Ref(PyUnicode_InternFromString(text)).release(); }

namespace {

/// The module's dictionary holds the function, so that a borrowed reference lasts.
PyObject* attribute_of(PyObject* module, const char* name) {
  PyObject* found = PyDict_GetItemString(PyModule_GetDict(module), name);
  require_set(found != nullptr);
  return found;
}

}  // namespace

PyObject* bridge(const char* name) {
  static PyObject* const module = Ref(PyImport_ImportModule("cermet.bridge")).release();
  return attribute_of(module, name);
}

PyObject* operands(const char* name) {
  static PyObject* const module = Ref(PyImport_ImportModule("cermet.operands")).release();
  return attribute_of(module, name);
}

std::string last_message() {
  std::string message = cermet_last_error_message();
  for (const char* name : {" (kDLCPU)", " (kDLCUDA)", " (kDLCUDAHost)", " (kDLCUDAManaged)"})
    for (std::size_t at = 0; (at = message.find(name)) != std::string::npos;)
      message.erase(at, std::string(name).size());
  return message;
}

}  // namespace cermet::python

PyMODINIT_FUNC PyInit__native() {
  using namespace cermet::python;  // NOLINT(google-build-using-namespace)
  return guarded([&] {
    Ref module(PyModule_Create(&definition));
    add_handle(module.get());
    add_operator(module.get());
    add_model(module.get());
    add_batch(module.get());
    add_onnx(module.get());
    add_graph(module.get());
    add_session(module.get());
    add_weights(module.get());
    return module.release();
  });
}
