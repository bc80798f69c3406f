#include "graph.hpp"

#include <vector>

#include "attributes.hpp"
#include "box.hpp"
#include "handle.hpp"

namespace cermet::python {
namespace {

/// create_graph(handle, device_type, device_index, computes, name, text or None)
PyObject* create_graph(PyObject*, PyObject* args) {
  return guarded([&] {
    PyObject* handle = nullptr;
    const char *name = nullptr, *text = nullptr;
    int type = 0, index = 0, computes = 0;
    require_set(PyArg_ParseTuple(args, "Oiipsz", &handle, &type, &index, &computes, &name, &text) != 0);
    const auto on = Box<Handle>::get(handle);
    auto made = std::make_shared<Graph>();
    made->name = name;
    made->device = {static_cast<DLDeviceType>(type), index};
    made->computes = computes != 0;
    check(text ? cermet_graph_parse(on->handle, text, &made->graph)
               : cermet_graph_create(on->handle, name, &made->graph));
    return Box<Graph>::make(std::move(made));
  });
}

PyObject* none() { Py_RETURN_NONE; }

/// Calls use(graph) with the graph's lock, which is taken without Python's.
template <class Use>
void locked(Graph& of, Use&& use) {
  std::unique_lock lock(of.mutex, std::defer_lock);
  {
    const Released released;
    lock.lock();
  }
  check(use(of.graph));
}

PyObject* symbol(PyObject* self, PyObject* args) {
  return guarded([&] {
    const char* name = nullptr;
    long long least = 0, greatest = 0;
    require_set(PyArg_ParseTuple(args, "sLL", &name, &least, &greatest) != 0);
    locked(*Box<Graph>::get(self),
           [&](cermet_graph* graph) { return cermet_graph_symbol(graph, name, least, greatest); });
    return none();
  });
}

/// An order of dimensions: a tuple of as many numbers as the caller has checked that there are dimensions; or None.
std::vector<std::int64_t> order_of(PyObject* tuple) {
  std::vector<std::int64_t> order;
  for (Py_ssize_t i = 0; tuple != Py_None && i < PyTuple_Size(tuple); ++i) {
    order.push_back(PyLong_AsLongLong(PyTuple_GetItem(tuple, i)));
    require_set(!PyErr_Occurred());
  }
  return order;
}

/// input(name, type, order or None)
PyObject* input(PyObject* self, PyObject* args) {
  return guarded([&] {
    const char *name = nullptr, *type = nullptr;
    PyObject* tuple = nullptr;
    require_set(PyArg_ParseTuple(args, "ssO", &name, &type, &tuple) != 0);
    const std::vector<std::int64_t> order = order_of(tuple);
    cermet_value made = CERMET_NO_VALUE;
    locked(*Box<Graph>::get(self), [&](cermet_graph* graph) {
      return order.empty() ? cermet_graph_input(graph, name, type, &made)
                           : cermet_graph_input_in_order(graph, name, type, order.data(), &made);
    });
    return PyLong_FromLong(made);
  });
}

/// constant(name, tensor), which is kept, or literal(name, tensor), which is copied.
template <bool IsKept>
PyObject* constant(PyObject* self, PyObject* args) {
  return guarded([&] {
    const char* name = nullptr;
    PyObject* tensor = nullptr;
    require_set(PyArg_ParseTuple(args, "sO", &name, &tensor) != 0);
    const auto graph = Box<Graph>::get(self);
    Operand operand = operand_of(tensor, graph->device, graph->device.device_type == kDLCPU ? -1 : 1,
                                 {graph->name.c_str(), "constant", graph->constants.size()});
    cermet_value made = CERMET_NO_VALUE;
    locked(*graph, [&](cermet_graph* g) {
      return (IsKept ? cermet_graph_constant : cermet_graph_literal)(g, name, nullptr, operand.get(), &made);
    });
    if (IsKept) graph->constants[name] = {std::move(operand), Ref::to(tensor)};
    return PyLong_FromLong(made);
  });
}

PyObject* set_constant(PyObject* self, PyObject* args) {
  return guarded([&] {
    const char* name = nullptr;
    PyObject* tensor = nullptr;
    require_set(PyArg_ParseTuple(args, "sO", &name, &tensor) != 0);
    const auto graph = Box<Graph>::get(self);
    Operand operand = operand_of(tensor, graph->device, graph->device.device_type == kDLCPU ? -1 : 1,
                                 {graph->name.c_str(), "constant", graph->constants.size()});
    locked(*graph, [&](cermet_graph* g) { return cermet_graph_set_constant(g, name, operand.get()); });
    graph->constants[name] = {std::move(operand), Ref::to(tensor)};
    return none();
  });
}

/// apply(op, (value or -1, ..), attributes, None or (name, ..)): (value, ..)
PyObject* apply(PyObject* self, PyObject* args) {
  return guarded([&] {
    const char* op = nullptr;
    PyObject *inputs = nullptr, *attributes = nullptr, *given = nullptr;
    require_set(PyArg_ParseTuple(args, "sO!O!O", &op, &PyTuple_Type, &inputs, &PyTuple_Type, &attributes, &given) != 0);
    const std::vector<cermet_value> operands = integers_of<cermet_value>(inputs);
    const AttributeList list(attributes);
    constexpr std::size_t most = 64;
    std::vector<std::string> texts;
    std::vector<const char*> names;
    if (given != Py_None) {
      const Ref items(PySequence_Tuple(given));
      for (Py_ssize_t i = 0; i < PyTuple_Size(items.get()); ++i)
        texts.push_back(text_of(PyTuple_GetItem(items.get(), i)));
      for (const std::string& text : texts) names.push_back(text.c_str());
      names.resize(most);
    }
    cermet_value made[most];
    std::size_t count = 0;
    locked(*Box<Graph>::get(self), [&](cermet_graph* graph) {
      return cermet_graph_apply(graph, op, operands.data(), operands.size(), list.data(), list.size(),
                                names.empty() ? nullptr : names.data(), made, most, &count);
    });
    Ref results(PyTuple_New(static_cast<Py_ssize_t>(count)));
    for (std::size_t i = 0; i < count; ++i)
      require_set(PyTuple_SetItem(results.get(), static_cast<Py_ssize_t>(i), Ref(PyLong_FromLong(made[i])).release()) ==
                  0);
    return results.release();
  });
}

/// output(name, value, order or None)
PyObject* output(PyObject* self, PyObject* args) {
  return guarded([&] {
    const char* name = nullptr;
    int value = 0;
    PyObject* tuple = nullptr;
    require_set(PyArg_ParseTuple(args, "siO", &name, &value, &tuple) != 0);
    const std::vector<std::int64_t> order = order_of(tuple);
    locked(*Box<Graph>::get(self), [&](cermet_graph* graph) {
      return order.empty() ? cermet_graph_output(graph, name, value)
                           : cermet_graph_output_in_order(graph, name, value, order.data());
    });
    return none();
  });
}

PyObject* update(PyObject* self, PyObject* args) {
  return guarded([&] {
    int input = 0, value = 0;
    require_set(PyArg_ParseTuple(args, "ii", &input, &value) != 0);
    locked(*Box<Graph>::get(self), [&](cermet_graph* graph) { return cermet_graph_update(graph, input, value); });
    return none();
  });
}

PyObject* scope_begin(PyObject* self, PyObject* args) {
  return guarded([&] {
    const char* name = nullptr;
    require_set(PyArg_ParseTuple(args, "s", &name) != 0);
    locked(*Box<Graph>::get(self), [&](cermet_graph* graph) { return cermet_graph_scope_begin(graph, name); });
    return none();
  });
}

/// super_kernel_begin(name or None, options)
PyObject* super_kernel_begin(PyObject* self, PyObject* args) {
  return guarded([&] {
    const char *name = nullptr, *options = nullptr;
    require_set(PyArg_ParseTuple(args, "zs", &name, &options) != 0);
    locked(*Box<Graph>::get(self),
           [&](cermet_graph* graph) { return cermet_graph_super_kernel_begin(graph, name, options); });
    return none();
  });
}

template <cermet_status (*End)(cermet_graph*)>
PyObject* end(PyObject* self, PyObject*) {
  return guarded([&] {
    locked(*Box<Graph>::get(self), End);
    return none();
  });
}

PyObject* describe(PyObject* self, PyObject* args) {
  return guarded([&] {
    int value = 0;
    require_set(PyArg_ParseTuple(args, "i", &value) != 0);
    cermet_value_info info{};
    Ref made;
    locked(*Box<Graph>::get(self), [&](cermet_graph* graph) {
      const cermet_status status = cermet_graph_value(graph, value, &info);
      if (status == CERMET_OK) made = description_of(info);
      return status;
    });
    return made.release();
  });
}

PyObject* find(PyObject* self, PyObject* args) {
  return guarded([&] {
    const char* name = nullptr;
    require_set(PyArg_ParseTuple(args, "s", &name) != 0);
    return PyLong_FromLong(cermet_graph_find(Box<Graph>::get(self)->graph, name));
  });
}

PyObject* as_text(PyObject* self, PyObject*) {
  return guarded([&] {
    Ref made;
    locked(*Box<Graph>::get(self), [&](cermet_graph* graph) {
      const char* found = cermet_graph_text(graph);
      if (!found) return CERMET_INTERNAL;
      made = text(found);
      return CERMET_OK;
    });
    return made.release();
  });
}

PyMethodDef methods[] = {{"symbol", symbol, METH_VARARGS, "symbol(name, least, greatest)."},
                         {"input", input, METH_VARARGS, "input(name, type, order): value."},
                         {"constant", constant<true>, METH_VARARGS, "constant(name, tensor): value."},
                         {"literal", constant<false>, METH_VARARGS, "literal(name, tensor): value."},
                         {"set_constant", set_constant, METH_VARARGS, "set_constant(name, tensor)."},
                         {"apply", apply, METH_VARARGS, "apply(op, inputs, attributes, names): values."},
                         {"output", output, METH_VARARGS, "output(name, value, order)."},
                         {"update", update, METH_VARARGS, "update(input, value)."},
                         {"scope_begin", scope_begin, METH_VARARGS, "scope_begin(name)."},
                         {"scope_end", end<cermet_graph_scope_end>, METH_NOARGS, "scope_end()."},
                         {"super_kernel_begin", super_kernel_begin, METH_VARARGS, "super_kernel_begin(name, options)."},
                         {"super_kernel_end", end<cermet_graph_super_kernel_end>, METH_NOARGS, "super_kernel_end()."},
                         {"describe", describe, METH_VARARGS, "describe(value): (name, dtype, shape)."},
                         {"find", find, METH_VARARGS, "find(name): value, or -1."},
                         {"text", as_text, METH_NOARGS, "The graph as text."},
                         {"close", Box<Graph>::close, METH_NOARGS, "Frees it."},
                         {}};
PyMethodDef functions[] = {{"create_graph", create_graph, METH_VARARGS, "See cermet.Graph."}, {}};

}  // namespace

Ref description_of(const cermet_value_info& info) {
  Ref shape(PyTuple_New(info.ndim));
  for (int d = 0; d < info.ndim; ++d) {
    Ref size = info.shape[d] >= 0 ? Ref(PyLong_FromLongLong(info.shape[d])) : text(info.symbols[d]);
    require_set(PyTuple_SetItem(shape.get(), d, size.release()) == 0);
  }
  return Ref(Py_BuildValue("(ssO)", info.name, info.dtype, shape.get()));
}

void add_graph(PyObject* module) {
  Box<Graph>::add_to(module, methods);
  require_set(PyModule_AddFunctions(module, functions) == 0);
}

}  // namespace cermet::python
