// Attributes from Python, as the C interface has them.
#pragma once

#include <deque>
#include <vector>

#include "python.hpp"

namespace cermet::python {

/// Holds what cermet_attribute points to.
class AttributeList {
 public:
  /// `items`: a tuple of (name, cermet_attribute_kind, value), whose values have the types that the kinds say. Throws
  /// ErrorIsSet.
  explicit AttributeList(PyObject* items);
  AttributeList(const AttributeList&) = delete;
  AttributeList& operator=(const AttributeList&) = delete;
  const cermet_attribute* data() const { return attributes_.data(); }
  std::size_t size() const { return attributes_.size(); }

 private:
  void take_list(cermet_attribute& attribute, PyObject* value);

  std::vector<cermet_attribute> attributes_;
  std::deque<std::string> texts_;  // elements stay where they are
  std::deque<std::vector<std::int64_t>> integers_;
  std::deque<std::vector<double>> numbers_;
  std::deque<std::vector<const char*>> strings_;
};

/// A sequence of integers that fit.
template <class Integer>
std::vector<Integer> integers_of(PyObject* sequence) {
  const Ref items(PySequence_Tuple(sequence));
  std::vector<Integer> values;
  for (Py_ssize_t i = 0; i < PyTuple_Size(items.get()); ++i) {
    const long long value = PyLong_AsLongLong(PyTuple_GetItem(items.get(), i));
    require_set(!PyErr_Occurred());
    if (value != static_cast<long long>(static_cast<Integer>(value))) {
      PyErr_Format(PyExc_OverflowError, "expected a number of %d bits, found %lld",
                   static_cast<int>(8 * sizeof(Integer)), value);
      throw ErrorIsSet();
    }
    values.push_back(static_cast<Integer>(value));
  }
  return values;
}

}  // namespace cermet::python
