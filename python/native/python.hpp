// The part of Python's C interface that does not change from 3.10 on, and what the binding adds to it: owned
// references, exceptions, the released lock.
#pragma once

#define Py_LIMITED_API 0x030A0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <cermet/cermet.h>

#include <exception>
#include <new>
#include <string>
#include <utility>

namespace cermet::python {

/// Thrown where Python's error indicator is set.
struct ErrorIsSet {};

/// A reference that is owned; null where moved from.
class Ref {
 public:
  Ref() = default;
  /// Takes over a new reference. Throws ErrorIsSet where it is null.
  explicit Ref(PyObject* owned) : object_(owned) {
    if (!owned) throw ErrorIsSet();
  }
  static Ref to(PyObject* borrowed) {
    Py_INCREF(borrowed);
    return Ref(borrowed);
  }
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  /// Freeing an object runs code of its own, which an exception that is on its way must not meet.
  ~Ref() {
    if (!object_) return;
    if (!PyErr_Occurred()) {
      Py_DECREF(object_);
      return;
    }
    PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
    PyErr_Fetch(&type, &value, &trace);
    Py_DECREF(object_);
    PyErr_Restore(type, value, trace);
  }
  PyObject* get() const { return object_; }
  PyObject* release() { return std::exchange(object_, nullptr); }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  PyObject* object_ = nullptr;
};

/// Other threads of Python run while this lives; nothing of Python may be touched then.
class Released {
 public:
  Released() : state_(PyEval_SaveThread()) {}
  ~Released() { PyEval_RestoreThread(state_); }
  Released(const Released&) = delete;
  Released& operator=(const Released&) = delete;

 private:
  PyThreadState* state_;
};

/// Sets the exception of cermet.errors for a status and throws ErrorIsSet.
[[noreturn]] void raise(cermet_status status, const std::string& message);
/// The library's last message, without the names that C has for devices.
std::string last_message();
inline void check(cermet_status status) {
  if (status != CERMET_OK) raise(status, last_message());
}
/// Throws ErrorIsSet where a function of Python's reports -1 or false.
inline void require_set(bool fine) {
  if (!fine) throw ErrorIsSet();
}

/// The body of a function that Python calls: what it throws becomes Python's error.
template <class Body>
PyObject* guarded(Body&& body) noexcept {
  try {
    return body();
  } catch (const ErrorIsSet&) {
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
  }
  return nullptr;
}

/// An attribute of cermet.bridge, the Python half of this module, which knows the frameworks.
PyObject* bridge(const char* name);
/// The same of cermet.operands, which knows what operands may become.
PyObject* operands(const char* name);

/// A string that lives as long as the module, for attribute names.
PyObject* interned(const char* text);

inline std::string text_of(PyObject* object) {
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(object, &size);
  require_set(text != nullptr);
  return {text, static_cast<std::size_t>(size)};
}
inline Ref text(const std::string& value) {
  return Ref(PyUnicode_DecodeUTF8(value.data(), static_cast<Py_ssize_t>(value.size()), "replace"));
}

template <class Method>
PyCFunction function(Method* method) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(method));
}

}  // namespace cermet::python
