#include "operator.hpp"

#include "attributes.hpp"
#include "box.hpp"
#include "handle.hpp"
#include "result.hpp"

namespace cermet::python {
namespace {

/// CU_STREAM_LEGACY: the default stream by a name of its own, because NULL is the handle's.
constexpr long long legacy_stream = 1;

/// The operands of a call.
class Call {
 public:
  Call(Operator& op, PyObject* args, PyObject* stream) : op_(op), args_(args), stream_(stream_of(args, stream)) {
    const auto count = static_cast<std::size_t>(PyTuple_Size(args));
    inputs_.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      inputs_.push_back(operand_of(object(i), op.device, stream_, {op.name.c_str(), "input", i}));
      tensors_.push_back(inputs_.back().get());
    }
  }

  std::vector<cermet_call_result> types() {
    std::vector<cermet_call_result> types;
    cermet_status status = CERMET_OK;
    {
      const Released released;
      const std::lock_guard lock(op_.mutex);
      std::size_t count = 0;
      status = cermet_call_output_count(op_.callable, tensors_.data(), tensors_.size(), &count);
      if (status == CERMET_OK) types.resize(count);
      for (std::size_t i = 0; i < types.size() && status == CERMET_OK; ++i)
        status = cermet_call_output(op_.callable, tensors_.data(), tensors_.size(), i, &types[i]);
    }
    check(status);
    return types;
  }

  /// New results, of the framework of the first operand.
  void allocate() {
    const std::size_t sample = first_given();
    for (const cermet_call_result& type : types()) {
      const auto shared = static_cast<std::size_t>(type.shared_input);
      if (type.shared_input >= 0) add_given(shared < inputs_.size() ? object(shared) : Py_None);
      else results_.emplace_back(type, object(sample), inputs_[sample], op_.device);
    }
  }

  /// `out`: a tensor, or a tuple of as many as there are results.
  void take_results(PyObject* out) {
    if (!PyTuple_Check(out)) return add_given(out);
    for (Py_ssize_t i = 0; i < PyTuple_Size(out); ++i) add_given(PyTuple_GetItem(out, i));
  }

  void run() {
    std::vector<DLTensor*> outputs;
    for (Result& result : results_) outputs.push_back(result.tensor());
    void* stream = stream_ < 0 ? nullptr : reinterpret_cast<void*>(static_cast<std::uintptr_t>(stream_));
    cermet_status status = CERMET_OK;
    {
      const Released released;
      const std::lock_guard lock(op_.mutex);
      status = cermet_call(op_.callable, tensors_.data(), tensors_.size(), outputs.data(), outputs.size(), stream);
    }
    check(status);
  }

  PyObject* take() {
    if (results_.size() == 1 && !op_.gives_tuple) return results_.front().take();
    Ref tuple(PyTuple_New(static_cast<Py_ssize_t>(results_.size())));
    for (std::size_t i = 0; i < results_.size(); ++i) require_set(PyTuple_SetItem(tuple.get(), static_cast<Py_ssize_t>(i), results_[i].take()) == 0);
    return tuple.release();
  }

 private:
  PyObject* object(std::size_t i) const { return PyTuple_GetItem(args_, static_cast<Py_ssize_t>(i)); }

  std::size_t first_given() const {
    for (std::size_t i = 0; i < inputs_.size(); ++i)
      if (inputs_[i].is_given) return i;
    raise(CERMET_INVALID_ARGUMENT, op_.name + ": expected a tensor, found none");
  }

  /// The stream as an integer: given, or that of the first tensor whose class says; -1 on the CPU.
  long long stream_of(PyObject* args, PyObject* stream) const {
    if (op_.device.device_type == kDLCPU) {
      if (stream && stream != Py_None) raise(CERMET_INVALID_ARGUMENT, op_.name + ": stream: expected none on the CPU, found one");
      return -1;
    }
    if (stream && stream != Py_None) {
      const long long given = PyLong_AsLongLong(stream);
      require_set(!PyErr_Occurred());
      return given == 0 ? legacy_stream : given;
    }
    for (Py_ssize_t i = 0; i < PyTuple_Size(args); ++i) {
      PyObject* tensor = PyTuple_GetItem(args, i);
      if (tensor == Py_None || PyTuple_Check(tensor)) continue;
      const ExchangeApi* api = exchange_api_of(tensor);
      if (!api || !api->current_stream) continue;
      void* found = nullptr;
      require_set(api->current_stream(op_.device.device_type, op_.device.device_id, &found) == 0);
      return found ? static_cast<long long>(reinterpret_cast<std::uintptr_t>(found)) : legacy_stream;
    }
    return legacy_stream;
  }

  void add_given(PyObject* object) {
    Operand operand = operand_of(object, op_.device, stream_, {op_.name.c_str(), "output", results_.size()});
    if (operand.is_read_only)
      raise(CERMET_INVALID_ARGUMENT,
            op_.name + ": output " + std::to_string(results_.size()) + ": expected memory that may be written, found a read-only tensor");
    results_.emplace_back(object, std::move(operand));
  }

  Operator& op_;
  PyObject* args_;
  long long stream_;
  std::vector<Operand> inputs_;
  std::vector<const DLTensor*> tensors_;
  std::vector<Result> results_;
};

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
    if (!op->computes) raise(CERMET_UNSUPPORTED, op->name + ": expected a device that computes, found one that does not");
    Call made(*op, args, stream);
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
    Call made(*op, args, nullptr);
    const std::vector<cermet_call_result> types = made.types();
    Ref list(PyTuple_New(static_cast<Py_ssize_t>(types.size())));
    for (std::size_t i = 0; i < types.size(); ++i) {
      Ref shape(PyTuple_New(types[i].ndim));
      for (int d = 0; d < types[i].ndim; ++d) require_set(PyTuple_SetItem(shape.get(), d, Ref(PyLong_FromLongLong(types[i].shape[d])).release()) == 0);
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
    const std::lock_guard lock(op->mutex);  // by the time that this has Python's lock, whoever holds it will let go without
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

/// get_op(handle, device_type, device_index, computes, name, inputs, attributes, constants, kernel, config, gives_tuple)
PyObject* get_op(PyObject*, PyObject* args) {
  return guarded([&] {
    PyObject *handle = nullptr, *inputs = nullptr, *attributes = nullptr;
    const char *name = nullptr, *kernel = nullptr, *config = nullptr;
    int type = 0, index = 0, computes = 0, gives_tuple = 0;
    unsigned long long constants = 0;
    require_set(PyArg_ParseTuple(args, "OiipsO!O!Kzzp", &handle, &type, &index, &computes, &name, &PyTuple_Type, &inputs, &PyTuple_Type, &attributes,
                                 &constants, &kernel, &config, &gives_tuple) != 0);
    auto op = std::make_shared<Operator>();
    op->name = name;
    op->device = {static_cast<DLDeviceType>(type), index};
    op->computes = computes != 0;
    op->gives_tuple = gives_tuple != 0;
    std::vector<const DLTensor*> samples;
    const auto count = static_cast<std::size_t>(PyTuple_Size(inputs));
    op->constants.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      PyObject* sample = PyTuple_GetItem(inputs, static_cast<Py_ssize_t>(i));
      op->constants.push_back(operand_of(sample, op->device, type == kDLCPU ? -1 : legacy_stream, {name, "input", i}));
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
      status = cermet_get_op(on->handle, name, samples.data(), count, list.data(), list.size(), &options, &op->callable);
    }
    check(status);
    for (std::size_t i = 0; i < count; ++i)
      if (i < 64 && (constants >> i & 1) != 0) op->kept.push_back(Ref::to(PyTuple_GetItem(inputs, static_cast<Py_ssize_t>(i))));
      else op->constants[i] = Operand();
    return Box<Operator>::make(std::move(op));
  });
}

PyMethodDef methods[] = {{"infer", infer, METH_VARARGS, "infer(*inputs): ((dtype, shape, shared input or -1), ..) of the results."},
                         {"close", Box<Operator>::close, METH_NOARGS, "Frees it."},
                         {}};
PyGetSetDef getters[] = {{"name", name, nullptr, "The operator.", nullptr},
                         {"kernel", choice<cermet_callable_kernel>, nullptr, "Name of the kernel of the last call, before one of the samples'.", nullptr},
                         {"config", choice<cermet_callable_config>, nullptr, "Its configuration; \"\" where it has one way to run.", nullptr},
                         {"bound_count", bound_count, nullptr, "Number of kernels bound so far: one for each set of types and shapes.", nullptr},
                         {}};
const char* const documentation = "An operator for tensors of any types and shapes that it takes: op(*tensors, out=None, stream=None). See cermet.get_op.";
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
