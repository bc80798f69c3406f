// ONNX models for Python's tensors.
#include "onnx.hpp"

#include <cermet/onnx.h>

#include <cstring>
#include <mutex>
#include <vector>

#include "box.hpp"
#include "handle.hpp"
#include "operand.hpp"

namespace cermet::python {
namespace {

struct Onnx {
  static constexpr const char* python_name = "Onnx";
  static constexpr const char* what = "model";
  cermet_onnx* model = nullptr;
  std::mutex mutex;

  Onnx() = default;
  Onnx(const Onnx&) = delete;
  Onnx& operator=(const Onnx&) = delete;
  ~Onnx() { cermet_onnx_destroy(model); }
};

/// open_onnx(handle, path, ((name, least, greatest), ..))
PyObject* open_onnx(PyObject*, PyObject* args) {
  return guarded([&] {
    PyObject *handle = nullptr, *rows = nullptr;
    const char* path = nullptr;
    require_set(PyArg_ParseTuple(args, "OsO!", &handle, &path, &PyTuple_Type, &rows) != 0);
    std::vector<cermet_onnx_range> ranges(static_cast<std::size_t>(PyTuple_Size(rows)));
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      long long least = 0, greatest = 0;
      require_set(PyArg_ParseTuple(PyTuple_GetItem(rows, static_cast<Py_ssize_t>(i)), "sLL", &ranges[i].name, &least,
                                   &greatest) != 0);
      ranges[i].least = least, ranges[i].greatest = greatest;
    }
    const auto on = Box<Handle>::get(handle);
    auto made = std::make_shared<Onnx>();
    cermet_status status = CERMET_OK;
    {
      const Released released;
      status = cermet_onnx_open(on->handle, path, ranges.data(), ranges.size(), &made->model);
    }
    check(status);
    return Box<Onnx>::make(std::move(made));
  });
}

/// (name, dtype or None, None or a tuple of sizes, names and None)
Ref value_of(const cermet_onnx_value& value) {
  Ref shape = Ref::to(Py_None);
  if (value.ndim >= 0) {
    shape = Ref(PyTuple_New(value.ndim));
    for (int d = 0; d < value.ndim; ++d) {
      Ref size = value.shape[d] >= 0  ? Ref(PyLong_FromLongLong(value.shape[d]))
                 : value.dim_names[d] ? text(value.dim_names[d])
                                      : Ref::to(Py_None);
      require_set(PyTuple_SetItem(shape.get(), d, size.release()) == 0);
    }
  }
  return Ref(Py_BuildValue("(szO)", value.name, value.dtype, shape.get()));
}

template <class Get>
PyObject* values_of(const Onnx& model, std::size_t count, Get&& get) {
  Ref list(PyTuple_New(static_cast<Py_ssize_t>(count)));
  for (std::size_t i = 0; i < count; ++i) {
    cermet_onnx_value value{};
    check(get(model.model, i, &value));
    require_set(PyTuple_SetItem(list.get(), static_cast<Py_ssize_t>(i), value_of(value).release()) == 0);
  }
  return list.release();
}

PyObject* inputs(PyObject* self, PyObject*) {
  return guarded([&] {
    const auto model = Box<Onnx>::get(self);
    return values_of(*model, cermet_onnx_input_count(model->model), cermet_onnx_input);
  });
}

PyObject* outputs(PyObject* self, PyObject*) {
  return guarded([&] {
    const auto model = Box<Onnx>::get(self);
    return values_of(*model, cermet_onnx_output_count(model->model), cermet_onnx_output);
  });
}

const char* name_of(DLDataType type, const char* declared) {
  if (declared && type.code == kDLUInt && type.bits == 8) return declared;  // bool and fp8 come as bytes
  switch (type.code) {
    case kDLFloat: return type.bits == 16 ? "f16" : type.bits == 32 ? "f32" : "f64";
    case kDLBfloat: return "bf16";
    case kDLInt: return type.bits == 8 ? "i8" : type.bits == 16 ? "i16" : type.bits == 32 ? "i32" : "i64";
    default: return type.bits == 8 ? "u8" : type.bits == 16 ? "u16" : type.bits == 32 ? "u32" : "u64";
  }
}

/// A copy of a result in memory of the host that the framework of `sample` makes.
Ref copied(cermet_onnx* model, std::size_t index, PyObject* sample) {
  DLTensor result{};
  cermet_onnx_value declared{};
  check(cermet_onnx_result(model, index, 1, &result));
  check(cermet_onnx_output(model, index, &declared));
  Ref shape(PyTuple_New(result.ndim));
  std::size_t bytes = result.dtype.bits / 8u;
  for (int d = 0; d < result.ndim; ++d) {
    bytes *= static_cast<std::size_t>(result.shape[d]);
    require_set(PyTuple_SetItem(shape.get(), d, Ref(PyLong_FromLongLong(result.shape[d])).release()) == 0);
  }
  const Ref dtype = text(name_of(result.dtype, declared.dtype));
  const Ref host(Py_BuildValue("(ii)", static_cast<int>(kDLCPU), 0));
  const Ref made(
      PyObject_CallFunctionObjArgs(bridge("empty_like"), sample, shape.get(), dtype.get(), host.get(), nullptr));
  PyObject *memory = nullptr, *object = nullptr;
  require_set(PyArg_ParseTuple(made.get(), "OO", &memory, &object) != 0);
  const Operand operand = operand_of(memory, {kDLCPU, 0}, -1, {"result", "tensor", index});
  if (bytes > 0)
    std::memcpy(static_cast<std::byte*>(operand.tensor.data) + operand.tensor.byte_offset, result.data, bytes);
  return Ref::to(object);
}

/// run(tensors, sample): results in memory of the host, of the framework of `sample`. Tensors on a GPU are complete.
PyObject* run(PyObject* self, PyObject* args) {
  return guarded([&] {
    PyObject *list = nullptr, *sample = nullptr;
    require_set(PyArg_ParseTuple(args, "O!O", &PyTuple_Type, &list, &sample) != 0);
    const auto model = Box<Onnx>::get(self);
    std::vector<Operand> operands;
    std::vector<const DLTensor*> tensors;
    const auto count = static_cast<std::size_t>(PyTuple_Size(list));
    operands.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      operands.push_back(
          operand_of(PyTuple_GetItem(list, static_cast<Py_ssize_t>(i)), {kDLCPU, 0}, 1, {"model", "input", i}));
      tensors.push_back(operands.back().get());
    }
    // Results stay in the model until its next run, so its lock is held while they are copied. It is taken with
    // Python's released, as every lock here.
    std::unique_lock lock(model->mutex, std::defer_lock);
    cermet_status status = CERMET_OK;
    {
      const Released released;
      lock.lock();
      status = cermet_onnx_run(model->model, tensors.data(), tensors.size());
    }
    check(status);
    const std::size_t results = cermet_onnx_output_count(model->model);
    Ref made(PyTuple_New(static_cast<Py_ssize_t>(results)));
    for (std::size_t i = 0; i < results; ++i)
      require_set(PyTuple_SetItem(made.get(), static_cast<Py_ssize_t>(i), copied(model->model, i, sample).release()) ==
                  0);
    return made.release();
  });
}

PyObject* compiled_count(PyObject* self, PyObject*) {
  return guarded([&] { return PyLong_FromLongLong(cermet_onnx_compiled_count(Box<Onnx>::get(self)->model)); });
}

PyMethodDef methods[] = {{"inputs", inputs, METH_NOARGS, "((name, dtype, shape), ..)."},
                         {"outputs", outputs, METH_NOARGS, "((name, dtype, shape), ..)."},
                         {"run", run, METH_VARARGS, "run(tensors, sample): results."},
                         {"compiled_count", compiled_count, METH_NOARGS, "Graphs compiled so far."},
                         {"close", Box<Onnx>::close, METH_NOARGS, "Frees it."},
                         {}};
PyMethodDef functions[] = {{"open_onnx", open_onnx, METH_VARARGS, "See cermet.OnnxModel."}, {}};

}  // namespace

void add_onnx(PyObject* module) {
  Box<Onnx>::add_to(module, methods);
  require_set(PyModule_AddFunctions(module, functions) == 0);
}

}  // namespace cermet::python
