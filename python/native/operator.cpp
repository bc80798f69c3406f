#include "operator.hpp"

#include "attributes.hpp"
#include "box.hpp"
#include "call.hpp"
#include "handle.hpp"

namespace cermet::python {
namespace {

PyObject* call(PyObject* self, PyObject* args, PyObject* words) {
  return guarded([&] {
    const auto op = Box<Operator>::get(self);
    PyObject *out = nullptr, *stream = nullptr;
    if (words) {
      out = PyDict_GetItemString(words, "out");
      stream = PyDict_GetItemString(words, "stream");
      if (PyDict_Size(words) != (out ? 1 : 0) + (stream ? 1 : 0)) {
        PyErr_Format(PyExc_TypeError, "%s: expected no keywords but out and stream, found %R", op->name.c_str(), words);
        throw ErrorIsSet();
      }
    }
    if (!op->computes)
      raise(CERMET_UNSUPPORTED, op->name + ": expected a device that computes, found one that does not");
    Call made(*op, args, stream_of(op->name, op->device, args, stream));
    made.make_readable();
    if (out && out != Py_None) made.take_results(out);
    else made.allocate();
    made.run();
    return made.take();
  });
}

/// Types of the results: ((dtype, shape, index of the input whose memory it is, or -1), ..).
PyObject* infer(PyObject* self, PyObject* args) {
  return guarded([&] {
    const auto op = Box<Operator>::get(self);
    Call made(*op, args, op->device.device_type == kDLCPU ? -1 : legacy_stream);
    const std::vector<cermet_call_result> types = made.types();
    Ref list(PyTuple_New(static_cast<Py_ssize_t>(types.size())));
    for (std::size_t i = 0; i < types.size(); ++i) {
      Ref shape(PyTuple_New(types[i].ndim));
      for (int d = 0; d < types[i].ndim; ++d)
        require_set(PyTuple_SetItem(shape.get(), d, Ref(PyLong_FromLongLong(types[i].shape[d])).release()) == 0);
      Ref row(Py_BuildValue("(sOi)", types[i].dtype, shape.get(), static_cast<int>(types[i].shared_input)));
      require_set(PyTuple_SetItem(list.get(), static_cast<Py_ssize_t>(i), row.release()) == 0);
    }
    return list.release();
  });
}

PyObject* name(PyObject* self, void*) {
  return guarded([&] { return text(Box<Operator>::get(self)->name).release(); });
}

template <const char* (*Text)(const cermet_callable*)>
PyObject* choice(PyObject* self, void*) {
  return guarded([&] {
    const auto op = Box<Operator>::get(self);
    const std::lock_guard lock(
        op->mutex);  // by the time that this has Python's lock, whoever holds it will let go without
    return text(Text(op->callable)).release();
  });
}

PyObject* bound_count(PyObject* self, void*) {
  return guarded([&] { return PyLong_FromSize_t(cermet_callable_bound_count(Box<Operator>::get(self)->callable)); });
}

PyObject* represent(PyObject* self) {
  return guarded([&] {
    const auto op = Box<Operator>::get(self);
    return PyUnicode_FromFormat("<cermet.Operator %s by %s>", op->name.c_str(), cermet_callable_kernel(op->callable));
  });
}

/// get_op(handle, device_type, device_index, computes, name, inputs, attributes, constants, kernel, config,
/// gives_tuple, state, may_lie_transposed)
PyObject* get_op(PyObject*, PyObject* args) {
  return guarded([&] {
    PyObject *handle = nullptr, *inputs = nullptr, *attributes = nullptr;
    const char *name = nullptr, *kernel = nullptr, *config = nullptr;
    int type = 0, index = 0, computes = 0, gives_tuple = 0;
    unsigned long long constants = 0, state = 0, may_lie_transposed = 0;
    require_set(PyArg_ParseTuple(args, "OiipsO!O!KzzpKK", &handle, &type, &index, &computes, &name, &PyTuple_Type,
                                 &inputs, &PyTuple_Type, &attributes, &constants, &kernel, &config, &gives_tuple,
                                 &state, &may_lie_transposed) != 0);
    auto op = std::make_shared<Operator>();
    op->state = state;
    op->may_lie_transposed = may_lie_transposed;
    op->name = name;
    op->device = {static_cast<DLDeviceType>(type), index};
    op->computes = computes != 0;
    op->gives_tuple = gives_tuple != 0;
    std::vector<const DLTensor*> samples;
    const auto count = static_cast<std::size_t>(PyTuple_Size(inputs));
    op->constants.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      PyObject* sample = PyTuple_GetItem(inputs, static_cast<Py_ssize_t>(i));
      op->constants.push_back(
          operand_of(sample, op->device, type == kDLCPU ? -1 : legacy_stream, {name, "input", i, true}));
      samples.push_back(op->constants.back().get());
    }
    const AttributeList list(attributes);
    cermet_get_op_options options = cermet_get_op_defaults();
    options.kernel = kernel;
    options.config = config;
    options.constants = constants;
    const auto on = Box<Handle>::get(handle);
    cermet_status status = CERMET_OK;
    {
      const Released released;
      status =
          cermet_get_op(on->handle, name, samples.data(), count, list.data(), list.size(), &options, &op->callable);
    }
    if (status != CERMET_OK) {
      const Ref message = text(last_message());
      raise(status,
            text_of(Ref(PyObject_CallFunctionObjArgs(operands("remedied"), message.get(), inputs, nullptr)).get()));
    }
    for (std::size_t i = 0; i < count; ++i)
      if (i < 64 && (constants >> i & 1) != 0)
        op->kept.push_back(Ref::to(PyTuple_GetItem(inputs, static_cast<Py_ssize_t>(i))));
      else op->constants[i] = Operand();
    return Box<Operator>::make(std::move(op));
  });
}

PyMethodDef methods[] = {
    {"infer", infer, METH_VARARGS, "infer(*inputs): ((dtype, shape, shared input or -1), ..) of the results."},
    {"close", Box<Operator>::close, METH_NOARGS, "Frees it."},
    {}};
PyGetSetDef getters[] = {{"name", name, nullptr, "The operator.", nullptr},
                         {"kernel", choice<cermet_callable_kernel>, nullptr,
                          "Name of the kernel of the last call, before one of the samples'.", nullptr},
                         {"config", choice<cermet_callable_config>, nullptr,
                          "Its configuration; \"\" where it has one way to run.", nullptr},
                         {"bound_count", bound_count, nullptr,
                          "Number of kernels bound so far: one for each set of types and shapes.", nullptr},
                         {}};
const char* const documentation =
    "An operator for tensors of any types and shapes that it takes: op(*tensors, out=None, stream=None). See "
    "cermet.get_op.";
PyMethodDef functions[] = {{"get_op", get_op, METH_VARARGS, "See cermet.get_op."}, {}};

}  // namespace

void add_operator(PyObject* module) {
  Box<Operator>::add_to(module, methods,
                        {{Py_tp_call, reinterpret_cast<void*>(call)},
                         {Py_tp_getset, getters},
                         {Py_tp_repr, reinterpret_cast<void*>(represent)},
                         {Py_tp_doc, const_cast<char*>(documentation)}});
  require_set(PyModule_AddFunctions(module, functions) == 0);
}

}  // namespace cermet::python
