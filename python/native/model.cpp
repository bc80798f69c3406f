#include "model.hpp"

#include <vector>

#include "attributes.hpp"
#include "box.hpp"
#include "handle.hpp"
#include "model_box.hpp"
#include "operand.hpp"

namespace cermet::python {
namespace {

/// load_model(handle, folder, options)
PyObject* load_model(PyObject*, PyObject* args) {
  return guarded([&] {
    PyObject* handle = nullptr;
    const char* folder = nullptr;
    cermet_model_options options = cermet_model_defaults();
    require_set(PyArg_ParseTuple(args, "Oss", &handle, &folder, &options.options) != 0);
    const auto on = Box<Handle>::get(handle);
    auto made = std::make_shared<Model>();
    cermet_status status = CERMET_OK;
    {
      const Released released;
      status = cermet_model_load(on->handle, folder, &options, &made->model);
    }
    check(status);
    return Box<Model>::make(std::move(made));
  });
}

PyObject* info(PyObject* self, PyObject*) {
  return guarded([&] { return text(cermet_model_info(Box<Model>::get(self)->model)).release(); });
}

/// tokenize(bytes, add_special): ids
PyObject* tokenize(PyObject* self, PyObject* args) {
  return guarded([&] {
    const char* bytes = nullptr;
    Py_ssize_t length = 0;
    int add_special = 0;
    require_set(PyArg_ParseTuple(args, "y#p", &bytes, &length, &add_special) != 0);
    const auto model = Box<Model>::get(self);
    std::vector<std::int32_t> ids(static_cast<std::size_t>(length) + 16);
    std::size_t count = 0;
    for (bool fits = false; !fits;) {
      check(cermet_model_tokenize(model->model, bytes, static_cast<std::size_t>(length), add_special, ids.data(),
                                  ids.size(), &count));
      fits = count <= ids.size();
      ids.resize(count);
    }
    Ref list(PyList_New(static_cast<Py_ssize_t>(count)));
    for (std::size_t i = 0; i < count; ++i)
      require_set(PyList_SetItem(list.get(), static_cast<Py_ssize_t>(i), Ref(PyLong_FromLong(ids[i])).release()) == 0);
    return list.release();
  });
}

/// detokenize(ids, skip_special): text
PyObject* detokenize(PyObject* self, PyObject* args) {
  return guarded([&] {
    PyObject* sequence = nullptr;
    int skip_special = 0;
    require_set(PyArg_ParseTuple(args, "Op", &sequence, &skip_special) != 0);
    const auto model = Box<Model>::get(self);
    const std::vector<std::int32_t> ids = integers_of<std::int32_t>(sequence);
    std::string made(8 * ids.size() + 16, '\0');
    for (bool fits = false; !fits;) {
      std::size_t length = 0;
      check(cermet_model_detokenize(model->model, ids.data(), ids.size(), skip_special, made.data(), made.size(),
                                    &length));
      fits = length <= made.size();
      made.resize(length);
    }
    return text(made).release();
  });
}

/// logits(ids, out): fills out, float32 [len(ids), vocab_size] in memory of the host.
PyObject* logits(PyObject* self, PyObject* args) {
  return guarded([&] {
    PyObject *sequence = nullptr, *out = nullptr;
    require_set(PyArg_ParseTuple(args, "OO", &sequence, &out) != 0);
    const auto model = Box<Model>::get(self);
    const std::vector<std::int32_t> ids = integers_of<std::int32_t>(sequence);
    Operand rows = operand_of(out, {kDLCPU, 0}, -1, {"logits", "output", 0});
    const DLTensor& t = rows.tensor;
    const auto vocabulary = static_cast<std::int64_t>(cermet_model_vocab_size(model->model));
    const bool dense =
        rows.is_given && (!t.strides || t.ndim != 2 ||
                          ((t.strides[1] == 1 || t.shape[1] == 1) && (t.strides[0] == vocabulary || t.shape[0] <= 1)));
    if (!dense || rows.is_read_only || t.device.device_type != kDLCPU || t.dtype.code != kDLFloat ||
        t.dtype.bits != 32 || t.ndim != 2 || t.shape[0] != static_cast<std::int64_t>(ids.size()) ||
        t.shape[1] != vocabulary)
      raise(CERMET_INVALID_ARGUMENT, "logits: expected memory of f32[" + std::to_string(ids.size()) + ", " +
                                         std::to_string(vocabulary) + "] on the CPU");
    auto* memory = reinterpret_cast<float*>(static_cast<std::byte*>(t.data) + t.byte_offset);
    cermet_status status = CERMET_OK;
    {
      const Released released;
      const std::lock_guard lock(model->mutex);
      status = cermet_model_logits(model->model, ids.data(), ids.size(), memory);
    }
    check(status);
    Py_RETURN_NONE;
  });
}

PyMethodDef methods[] = {{"info", info, METH_NOARGS, "JSON."},
                         {"tokenize", tokenize, METH_VARARGS, "tokenize(bytes, add_special): ids."},
                         {"detokenize", detokenize, METH_VARARGS, "detokenize(ids, skip_special): text."},
                         {"logits", logits, METH_VARARGS, "logits(ids, out): of every position, into out."},
                         {"close", Box<Model>::close, METH_NOARGS, "Frees it; a batch on it keeps its memory."},
                         {}};
PyMethodDef functions[] = {{"load_model", load_model, METH_VARARGS, "See cermet.Model."}, {}};

}  // namespace

void add_model(PyObject* module) {
  Box<Model>::add_to(module, methods);
  require_set(PyModule_AddFunctions(module, functions) == 0);
}

}  // namespace cermet::python
