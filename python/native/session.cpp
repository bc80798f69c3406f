#include "session.hpp"

#include <mutex>
#include <vector>

#include "box.hpp"
#include "call.hpp"
#include "graph.hpp"
#include "layout.hpp"
#include "weights.hpp"

namespace cermet::python {
namespace {

struct Session {
  static constexpr const char* python_name = "Session";
  static constexpr const char* what = "session";
  std::string name;
  DLDevice device{kDLCPU, 0};
  bool computes = true;
  std::vector<std::string> dtypes;                ///< of the results
  std::vector<std::vector<std::int64_t>> orders;  ///< of the results' dimensions in memory; empty: as they are
  unsigned long long kept_inputs = 0;             ///< a bit for each that is written, or has an order of its own
  PyObject* weights = nullptr;                    ///< whose tensors it reads
  cermet_session* session = nullptr;
  std::mutex mutex;

  Session() = default;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() {
    cermet_session_destroy(session);
    Py_XDECREF(weights);
  }
};

/// compile(graph, ((symbol, maximum), ..), fusion, rounding, (skip, ..), capture, super_kernel, super_kernel_options,
/// weights or None)
PyObject* compile(PyObject*, PyObject* args) {
  return guarded([&] {
    PyObject *graph = nullptr, *rows = nullptr, *steps = nullptr, *weights = nullptr;
    cermet_compile_options options = cermet_compile_defaults();
    int capture = 1;
    require_set(PyArg_ParseTuple(args, "OO!ssO!pzzO", &graph, &PyTuple_Type, &rows, &options.fusion, &options.rounding,
                                 &PyTuple_Type, &steps, &capture, &options.super_kernel, &options.super_kernel_options,
                                 &weights) != 0);
    std::vector<cermet_maximum> maxima(static_cast<std::size_t>(PyTuple_Size(rows)));
    for (std::size_t i = 0; i < maxima.size(); ++i) {
      long long most = 0;
      require_set(PyArg_ParseTuple(PyTuple_GetItem(rows, static_cast<Py_ssize_t>(i)), "sL", &maxima[i].symbol, &most) !=
                  0);
      maxima[i].value = most;
    }
    std::vector<std::string> texts;
    std::vector<const char*> skip;
    for (Py_ssize_t i = 0; i < PyTuple_Size(steps); ++i) texts.push_back(text_of(PyTuple_GetItem(steps, i)));
    for (const std::string& text : texts) skip.push_back(text.c_str());
    options.maxima = maxima.data();
    options.maximum_count = maxima.size();
    options.skip = skip.data();
    options.skip_count = skip.size();
    options.capture = capture;
    const auto from = Box<Graph>::get(graph);
    auto made = std::make_shared<Session>();
    made->name = from->name;
    made->device = from->device;
    made->computes = from->computes;
    if (weights != Py_None) {
      const auto shared = Box<Weights>::get(weights);
      options.weights = shared->weights;
      shared->graphs.push_back(from);
      made->weights = weights;
      Py_INCREF(weights);
    }
    cermet_status status = CERMET_OK;
    {
      const Released released;
      const std::lock_guard lock(from->mutex);
      status = cermet_graph_compile(from->graph, &options, &made->session);
    }
    check(status);
    for (std::size_t i = 0; i < cermet_session_output_count(made->session); ++i) {
      cermet_value_info info{};
      check(cermet_session_output(made->session, i, &info));
      made->dtypes.emplace_back(info.dtype);
      std::int64_t order[8];
      made->orders.emplace_back(order, order + cermet_session_output_order(made->session, i, order));
    }
    for (std::size_t i = 0; i < cermet_session_input_count(made->session) && i < 64; ++i) {
      std::int64_t order[8];
      if (cermet_session_input_is_written(made->session, i) || cermet_session_input_order(made->session, i, order) > 0)
        made->kept_inputs |= 1ull << i;
    }
    return Box<Session>::make(std::move(made));
  });
}

template <std::size_t (*Count)(const cermet_session*),
          cermet_status (*Get)(cermet_session*, std::size_t, cermet_value_info*)>
PyObject* ports(PyObject* self, PyObject*) {
  return guarded([&] {
    const auto of = Box<Session>::get(self);
    Ref list(PyTuple_New(static_cast<Py_ssize_t>(Count(of->session))));
    for (std::size_t i = 0; i < Count(of->session); ++i) {
      cermet_value_info info{};
      check(Get(of->session, i, &info));
      require_set(PyTuple_SetItem(list.get(), static_cast<Py_ssize_t>(i), description_of(info).release()) == 0);
    }
    return list.release();
  });
}

/// One run: its tensors, and where its results go. The session's lock is held.
class Run {
 public:
  Run(Session& of, PyObject* inputs, long long stream)
      : of_(of),
        args_(inputs),
        stream_(stream),
        inputs_(inputs, of.device, stream, of.name.c_str(), of.kept_inputs),
        tensors_(inputs_.tensors()) {
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      if (cermet_session_input_is_written(of.session, i) == 0) continue;
      const Role role{of.name.c_str(), "input", i};
      if (operand_of(PyTuple_GetItem(inputs, static_cast<Py_ssize_t>(i)), of.device, stream, role).is_read_only)
        raise(CERMET_INVALID_ARGUMENT, role.text() + ": expected memory that may be written, found a read-only tensor");
    }
  }

  /// New results of the first input's framework; one that is an input's memory is that tensor.
  void allocate(PyObject* sample) {
    const Operand like = operand_of(sample, of_.device, stream_, {of_.name.c_str(), "input", 0});
    for (std::size_t i = 0; i < of_.dtypes.size(); ++i) {
      const std::int32_t shared = cermet_session_output_alias(of_.session, i);
      if (shared >= 0) {
        add(PyTuple_GetItem(args_, shared));
        continue;
      }
      cermet_value_info info{};
      cermet_call_result type{of_.dtypes[i].c_str(), dlpack_type(of_.dtypes[i]), 0, -1, {}};
      check(cermet_session_output(of_.session, i, &info));
      type.ndim = info.ndim;
      check(cermet_session_output_shape(of_.session, i, tensors_.data(), tensors_.size(), type.shape));
      if (of_.orders[i].empty()) results_.emplace_back(type, sample, like, of_.device);
      else add_in_order(type, sample, of_.orders[i]);
    }
  }
  void take(PyObject* out) {
    for (Py_ssize_t i = 0; i < PyTuple_Size(out); ++i) add(PyTuple_GetItem(out, i));
  }
  cermet_status start() {
    std::vector<DLTensor*> outputs;
    for (Result& result : results_) outputs.push_back(result.tensor());
    void* stream = stream_ < 0 ? nullptr : reinterpret_cast<void*>(static_cast<std::uintptr_t>(stream_));
    const Released released;
    return cermet_session_run(of_.session, tensors_.data(), tensors_.size(), outputs.data(), outputs.size(), stream);
  }
  PyObject* results() {
    Ref tuple(PyTuple_New(static_cast<Py_ssize_t>(results_.size())));
    for (std::size_t i = 0; i < results_.size(); ++i)
      require_set(PyTuple_SetItem(tuple.get(), static_cast<Py_ssize_t>(i), results_[i].take()) == 0);
    return tuple.release();
  }

 private:
  static Ref tuple_of(const std::int64_t* numbers, std::size_t count) {
    Ref tuple(PyTuple_New(static_cast<Py_ssize_t>(count)));
    for (std::size_t i = 0; i < count; ++i)
      require_set(PyTuple_SetItem(tuple.get(), static_cast<Py_ssize_t>(i),
                                  Ref(PyLong_FromLongLong(numbers[i])).release()) == 0);
    return tuple;
  }
  /// A new result with its dimensions in another order in memory.
  void add_in_order(const cermet_call_result& type, PyObject* sample, const std::vector<std::int64_t>& order) {
    const Ref shape = tuple_of(type.shape, static_cast<std::size_t>(type.ndim)), dtype = text(type.dtype),
              place(Py_BuildValue("(ii)", static_cast<int>(of_.device.device_type),
                                  static_cast<int>(of_.device.device_id))),
              dims = tuple_of(order.data(), order.size());
    const Ref made(PyObject_CallFunctionObjArgs(bridge("empty_in_order"), sample, shape.get(), dtype.get(), place.get(),
                                                dims.get(), nullptr));
    PyObject *memory = nullptr, *object = nullptr;
    require_set(PyArg_ParseTuple(made.get(), "OO", &memory, &object) != 0);
    Operand operand = operand_of(memory, of_.device, stream_, {of_.name.c_str(), "output", results_.size()});
    operand.tensor.dtype = dlpack_type(type.dtype);
    results_.emplace_back(object, std::move(operand));
  }
  void add(PyObject* object) {
    const Role role{of_.name.c_str(), "output", results_.size()};
    Operand operand = operand_of(object, of_.device, stream_, role);
    if (operand.is_read_only)
      raise(CERMET_INVALID_ARGUMENT, role.text() + ": expected memory that may be written, found a read-only tensor");
    results_.emplace_back(object, std::move(operand));
  }

  Session& of_;
  PyObject* args_;
  long long stream_;
  ReadableOperands inputs_;
  const std::vector<const DLTensor*>& tensors_;
  std::vector<Result> results_;
};

/// run(tensors, sample, out or None, stream or None): results. New ones are of the framework of `sample`, a tensor.
PyObject* run(PyObject* self, PyObject* args) {
  return guarded([&] {
    PyObject *list = nullptr, *sample = nullptr, *out = nullptr, *stream = nullptr;
    require_set(PyArg_ParseTuple(args, "O!OOO", &PyTuple_Type, &list, &sample, &out, &stream) != 0);
    const auto of = Box<Session>::get(self);
    if (!of->computes)
      raise(CERMET_UNSUPPORTED, of->name + ": expected a device that computes, found one that does not");
    Run made(*of, list, stream_of(of->name, of->device, list, stream));
    std::unique_lock lock(of->mutex, std::defer_lock);  // taken with Python's released, as every lock here
    {
      const Released released;
      lock.lock();
    }
    if (PyTuple_Check(out)) made.take(out);
    else made.allocate(sample);
    check(made.start());
    return made.results();
  });
}

PyObject* output_alias(PyObject* self, PyObject* args) {
  return guarded([&] {
    Py_ssize_t index = 0;
    require_set(PyArg_ParseTuple(args, "n", &index) != 0);
    const auto of = Box<Session>::get(self);
    return PyLong_FromLong(index < 0 ? -1 : cermet_session_output_alias(of->session, static_cast<std::size_t>(index)));
  });
}

PyObject* explain(PyObject* self, PyObject*) {
  return guarded([&] {
    const auto of = Box<Session>::get(self);
    const std::lock_guard lock(of->mutex);
    const char* found = cermet_session_explain(of->session);
    if (!found) raise(CERMET_INTERNAL, cermet_last_error_message());
    return text(found).release();
  });
}

/// (steps, bytes of intermediate values, bytes of constants)
PyObject* sizes(PyObject* self, PyObject*) {
  return guarded([&] {
    const auto of = Box<Session>::get(self);
    return Py_BuildValue("(nnn)", static_cast<Py_ssize_t>(cermet_session_step_count(of->session)),
                         static_cast<Py_ssize_t>(cermet_session_arena_bytes(of->session)),
                         static_cast<Py_ssize_t>(cermet_session_constant_bytes(of->session)));
  });
}

PyMethodDef methods[] = {
    {"inputs", ports<cermet_session_input_count, cermet_session_input>, METH_NOARGS, "((name, dtype, shape), ..)."},
    {"outputs", ports<cermet_session_output_count, cermet_session_output>, METH_NOARGS, "((name, dtype, shape), ..)."},
    {"run", run, METH_VARARGS, "run(tensors, sample, out, stream): results."},
    {"output_alias", output_alias, METH_VARARGS, "output_alias(index): input, or -1."},
    {"explain", explain, METH_NOARGS, "What was compiled."},
    {"sizes", sizes, METH_NOARGS, "(steps, bytes of intermediate values, bytes of constants)."},
    {"close", Box<Session>::close, METH_NOARGS, "Frees it."},
    {}};
PyMethodDef functions[] = {{"compile_graph", compile, METH_VARARGS, "See cermet.Graph.compile."}, {}};

}  // namespace

void add_session(PyObject* module) {
  Box<Session>::add_to(module, methods);
  require_set(PyModule_AddFunctions(module, functions) == 0);
}

}  // namespace cermet::python
