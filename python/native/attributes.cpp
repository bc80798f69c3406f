#include "attributes.hpp"

namespace cermet::python {

AttributeList::AttributeList(PyObject* items) {
  for (Py_ssize_t i = 0; i < PyTuple_Size(items); ++i) {
    PyObject *name = nullptr, *value = nullptr;
    int kind = 0;
    require_set(PyArg_ParseTuple(PyTuple_GetItem(items, i), "UiO", &name, &kind, &value) != 0);
    cermet_attribute attribute{};
    attribute.name = texts_.emplace_back(text_of(name)).c_str();
    attribute.kind = static_cast<cermet_attribute_kind>(kind);
    switch (attribute.kind) {
      case CERMET_BOOL:
      case CERMET_INT: attribute.integer = PyLong_AsLongLong(value); break;
      case CERMET_FLOAT: attribute.number = PyFloat_AsDouble(value); break;
      case CERMET_STRING: attribute.string = texts_.emplace_back(text_of(value)).c_str(); break;
      default: take_list(attribute, value);
    }
    require_set(!PyErr_Occurred());
    attributes_.push_back(attribute);
  }
}

void AttributeList::take_list(cermet_attribute& attribute, PyObject* value) {
  if (attribute.kind == CERMET_INTS) {
    attribute.integers = integers_.emplace_back(integers_of<std::int64_t>(value)).data();
    attribute.count = integers_.back().size();
    return;
  }
  const Ref items(PySequence_Tuple(value));
  auto& numbers = numbers_.emplace_back();
  auto& strings = strings_.emplace_back();
  for (Py_ssize_t i = 0; i < PyTuple_Size(items.get()); ++i) {
    PyObject* item = PyTuple_GetItem(items.get(), i);
    if (attribute.kind == CERMET_FLOATS) numbers.push_back(PyFloat_AsDouble(item));
    else strings.push_back(texts_.emplace_back(text_of(item)).c_str());
    require_set(!PyErr_Occurred());
  }
  attribute.numbers = numbers.data();
  attribute.strings = strings.data();
  attribute.count = static_cast<std::size_t>(PyTuple_Size(items.get()));
}

}  // namespace cermet::python
