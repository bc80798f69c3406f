#include <vector>

#include "attributes.hpp"
#include "box.hpp"
#include "model.hpp"
#include "model_box.hpp"

namespace cermet::python {
namespace {

struct Batch {
  static constexpr const char* python_name = "Batch";
  static constexpr const char* what = "batch";
  std::shared_ptr<Model> model;  ///< for its mutex
  cermet_batch* batch = nullptr;

  Batch() = default;
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;
  ~Batch() { cermet_batch_destroy(batch); }
};

/// create_batch(model)
PyObject* create_batch(PyObject*, PyObject* args) {
  return guarded([&] {
    PyObject* model = nullptr;
    require_set(PyArg_ParseTuple(args, "O", &model) != 0);
    auto made = std::make_shared<Batch>();
    made->model = Box<Model>::get(model);
    cermet_status status = CERMET_OK;
    {
      const Released released;
      const std::lock_guard lock(made->model->mutex);
      status = cermet_batch_create(made->model->model, &made->batch);
    }
    check(status);
    return Box<Batch>::make(std::move(made));
  });
}

/// submit(ids, options): the request's number
PyObject* submit(PyObject* self, PyObject* args) {
  return guarded([&] {
    PyObject* sequence = nullptr;
    cermet_generate_options options = cermet_generate_defaults();
    require_set(PyArg_ParseTuple(args, "Os", &sequence, &options.options) != 0);
    const auto batch = Box<Batch>::get(self);
    const std::vector<std::int32_t> ids = integers_of<std::int32_t>(sequence);
    std::int64_t request = 0;
    check(cermet_batch_submit(batch->batch, ids.data(), ids.size(), &options, &request));
    return PyLong_FromLongLong(request);
  });
}

/// Number of requests that have not ended.
PyObject* step(PyObject* self, PyObject*) {
  return guarded([&] {
    const auto batch = Box<Batch>::get(self);
    std::size_t left = 0;
    cermet_status status = CERMET_OK;
    {
      const Released released;
      const std::lock_guard lock(batch->model->mutex);
      status = cermet_batch_step(batch->batch, &left);
    }
    check(status);
    return PyLong_FromSize_t(left);
  });
}

/// poll(request): (ids, text, None or (prompt_tokens, new_tokens, prefill_seconds, decode_seconds, end))
PyObject* poll(PyObject* self, PyObject* args) {
  return guarded([&] {
    long long request = 0;
    require_set(PyArg_ParseTuple(args, "L", &request) != 0);
    const auto batch = Box<Batch>::get(self);
    Ref ids(PyList_New(0));
    std::string made;
    cermet_generation result{};
    std::int32_t done = 0;
    std::int32_t tokens[64];
    for (std::size_t count = std::size(tokens); count == std::size(tokens) && !done;) {
      const char* piece = nullptr;
      std::size_t length = 0;
      check(cermet_batch_poll_text(batch->batch, request, tokens, std::size(tokens), &count, &piece, &length, &done,
                                   &result));
      made.append(piece ? piece : "", length);
      for (std::size_t i = 0; i < count; ++i)
        require_set(PyList_Append(ids.get(), Ref(PyLong_FromLong(tokens[i])).get()) == 0);
    }
    Ref end = done ? Ref(Py_BuildValue("(nnddi)", static_cast<Py_ssize_t>(result.prompt_tokens),
                                       static_cast<Py_ssize_t>(result.new_tokens), result.prefill_seconds,
                                       result.decode_seconds, static_cast<int>(result.end)))
                   : Ref::to(Py_None);
    return Py_BuildValue("(NNN)", ids.release(), text(made).release(), end.release());
  });
}

PyMethodDef methods[] = {{"submit", submit, METH_VARARGS, "submit(ids, options): the request's number."},
                         {"step", step, METH_NOARGS, "One pass; the number of requests that have not ended."},
                         {"poll", poll, METH_VARARGS, "poll(request): (ids, text, None or how it ended)."},
                         {"close", Box<Batch>::close, METH_NOARGS, "Frees it; the model is free for others then."},
                         {}};
PyMethodDef functions[] = {{"create_batch", create_batch, METH_VARARGS, "create_batch(model)."}, {}};

}  // namespace

void add_batch(PyObject* module) {
  Box<Batch>::add_to(module, methods);
  require_set(PyModule_AddFunctions(module, functions) == 0);
}

}  // namespace cermet::python
