#include "operand.hpp"

#include <cstring>
#include <unordered_map>

namespace cermet::python {
namespace {

/// How objects of a class are read.
enum class Way { exchange, versioned, unversioned };

struct Class {
  Way way;
  const ExchangeApi* api = nullptr;
  bool is_tensors = false;  ///< it has one of them
};

const ExchangeApi* exported_api(PyTypeObject* type) {
  PyObject* capsule = PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), "__dlpack_c_exchange_api__");
  if (!capsule) {
    PyErr_Clear();
    return nullptr;
  }
  const Ref held(capsule);
  if (!PyCapsule_IsValid(capsule, "dlpack_exchange_api")) return nullptr;
  const auto* api = static_cast<const ExchangeApi*>(PyCapsule_GetPointer(capsule, "dlpack_exchange_api"));
  while (api && api->version.major != 1) api = api->previous;
  return api && api->tensor_from_object && api->allocate && api->object_from_managed ? api : nullptr;
}

/// Classes are kept: one that went could leave its address to another.
Class& class_of(PyObject* object) {
  static std::unordered_map<PyTypeObject*, Class> known;
  PyTypeObject* type = Py_TYPE(object);
  const auto found = known.find(type);
  if (found != known.end()) return found->second;
  const ExchangeApi* api = exported_api(type);
  Py_INCREF(type);
  const bool exports = PyObject_HasAttrString(reinterpret_cast<PyObject*>(type), "__dlpack__") != 0;
  return known[type] = {api ? Way::exchange : Way::versioned, api, api || exports};
}

/// Reading a PyTorch tensor forgets how it was computed, so one that gradients are wanted of is refused, as
/// `__dlpack__` does.
void refuse_gradients(PyObject* object, const Role& role) {
  static PyObject* const name = interned("requires_grad");
  PyObject* found = PyObject_GetAttr(object, name);
  if (!found) return PyErr_Clear();
  const Ref value(found);
  if (value.get() != Py_True) return;
  const Ref enabled(PyObject_CallFunctionObjArgs(bridge("gradients_are_recorded"), nullptr));
  if (enabled.get() == Py_True)
    raise(CERMET_INVALID_ARGUMENT, role.text() +
                                       ": expected a tensor that no gradient is wanted of (torch.no_grad() or "
                                       "detach()), found one with requires_grad");
}

/// `__dlpack__` with what the class takes.
Ref capsule_of(Class& of, PyObject* method, long long stream) {
  const Ref none(PyTuple_New(0));
  const Ref words(PyDict_New());
  if (stream >= 0) {
    const Ref value(PyLong_FromLongLong(stream));
    require_set(PyDict_SetItemString(words.get(), "stream", value.get()) == 0);
  }
  if (of.way == Way::versioned) {
    static PyObject* const version = Py_BuildValue("(ii)", 1, 0);
    require_set(PyDict_SetItemString(words.get(), "max_version", version) == 0);
    if (PyObject* capsule = PyObject_Call(method, none.get(), words.get())) return Ref(capsule);
    require_set(PyErr_ExceptionMatches(PyExc_TypeError) != 0);
    PyErr_Clear();
    of.way = Way::unversioned;
    require_set(PyDict_DelItemString(words.get(), "max_version") == 0);
  }
  return Ref(PyObject_Call(method, none.get(), words.get()));
}

void read_capsule(Operand& operand, Ref capsule) {
  if (PyCapsule_IsValid(capsule.get(), "dltensor_versioned")) {
    const auto* managed =
        static_cast<ManagedTensorVersioned*>(PyCapsule_GetPointer(capsule.get(), "dltensor_versioned"));
    if (managed->version.major != 1)
      raise(CERMET_UNSUPPORTED,
            "DLPack: expected a tensor of version 1, found " + std::to_string(managed->version.major));
    operand.tensor = managed->tensor;
    operand.is_read_only = (managed->flags & dlpack_read_only) != 0;
  } else {
    const auto* managed = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule.get(), "dltensor"));
    require_set(managed != nullptr);
    operand.tensor = managed->dl_tensor;
  }
  operand.is_given = true;
  operand.owner = std::move(capsule);  // whose destructor frees the tensor
}

/// The stream for `__dlpack__`: none for memory of the host.
long long stream_for(PyObject* object, long long stream) {
  if (stream < 0) return -1;
  const Ref place(PyObject_CallMethod(object, "__dlpack_device__", nullptr));
  int type = 0, index = 0;
  require_set(PyArg_ParseTuple(place.get(), "ii", &type, &index) != 0);
  return type == kDLCPU ? -1 : stream;
}

/// Element types that the framework does not export (bf16 of NumPy, fp8 of older PyTorch) are exported as integers of
/// their size.
Operand operand_of_bits(PyObject* object, DLDevice device, long long stream, const Role& role) {
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  const Ref error(value);
  Py_XDECREF(type), Py_XDECREF(trace);
  Ref bits(PyObject_CallFunctionObjArgs(bridge("as_bits"), object,
                                        std::strcmp(role.kind, "output") == 0 ? Py_False : Py_True, nullptr));
  if (bits.get() == Py_None) {
    const Ref place = text(role.text());
    const Ref refusal(PyObject_CallFunctionObjArgs(operands("refusal"), place.get(), object, error.get(), nullptr));
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(refusal.get())), refusal.get());
    throw ErrorIsSet();
  }
  PyObject *view = nullptr, *name = nullptr;
  require_set(PyArg_ParseTuple(bits.get(), "OU", &view, &name) != 0);
  Operand operand = operand_of(view, device, stream, role);
  operand.tensor.dtype = dlpack_type(text_of(name));
  if (!operand.owner) operand.owner = Ref::to(view);
  return operand;
}

Operand described(PyObject* object, DLDevice device) {
  Operand operand;
  PyObject *name = nullptr, *shape = nullptr;
  require_set(PyArg_ParseTuple(object, "UO!", &name, &PyTuple_Type, &shape) != 0);
  for (Py_ssize_t i = 0; i < PyTuple_Size(shape); ++i) {
    operand.shape.push_back(PyLong_AsLongLong(PyTuple_GetItem(shape, i)));
    require_set(!PyErr_Occurred());
  }
  operand.tensor = {
      nullptr, device, static_cast<int>(operand.shape.size()), dlpack_type(text_of(name)), operand.shape.data(),
      nullptr, 0};
  operand.is_given = true;
  return operand;
}

}  // namespace

std::string Role::text() const {
  std::string text = std::string(of) + ": " + kind + " " + std::to_string(index);
  if (!is_operators) return text;
  const Ref operator_name = python::text(of), kind_name = python::text(kind), number(PyLong_FromSize_t(index));
  const Ref name(
      PyObject_CallFunctionObjArgs(operands("place_of"), operator_name.get(), kind_name.get(), number.get(), nullptr));
  return text + text_of(name.get());
}

DLDataType dlpack_type(const std::string& name) {
  static const std::unordered_map<std::string, DLDataType> types{{"f32", {kDLFloat, 32, 1}},
                                                                 {"f64", {kDLFloat, 64, 1}},
                                                                 {"f16", {kDLFloat, 16, 1}},
                                                                 {"bf16", {kDLBfloat, 16, 1}},
                                                                 {"i8", {kDLInt, 8, 1}},
                                                                 {"i16", {kDLInt, 16, 1}},
                                                                 {"i32", {kDLInt, 32, 1}},
                                                                 {"i64", {kDLInt, 64, 1}},
                                                                 {"u8", {kDLUInt, 8, 1}},
                                                                 {"u16", {kDLUInt, 16, 1}},
                                                                 {"u32", {kDLUInt, 32, 1}},
                                                                 {"u64", {kDLUInt, 64, 1}},
                                                                 {"bool", {dl_bool, 8, 1}},
                                                                 {"f8_e4m3", {dl_f8_e4m3, 8, 1}},
                                                                 {"f8_e5m2", {dl_f8_e5m2, 8, 1}},
                                                                 {"f8_e4m3fnuz", {dl_f8_e4m3fnuz, 8, 1}},
                                                                 {"f8_e5m2fnuz", {dl_f8_e5m2fnuz, 8, 1}},
                                                                 {"f8_e8m0", {dl_f8_e8m0, 8, 1}}};
  const auto found = types.find(name);
  if (found == types.end())
    raise(CERMET_INVALID_ARGUMENT, "element type: expected one that Cermet knows, found '" + name + "'");
  return found->second;
}

const ExchangeApi* exchange_api_of(PyObject* object) { return class_of(object).api; }

bool is_tensor(PyObject* object) {
  return class_of(object).is_tensors || PyObject_HasAttrString(object, "__dlpack__") != 0;
}

Operand operand_of(PyObject* object, DLDevice device, long long stream, const Role& role) {
  Operand operand;
  if (object == Py_None) return operand;
  if (PyTuple_Check(object)) return described(object, device);
  Class& of = class_of(object);
  if (of.way == Way::exchange) {
    refuse_gradients(object, role);
    if (of.api->tensor_from_object(object, &operand.tensor) != 0) return operand_of_bits(object, device, stream, role);
    operand.api = of.api;
    operand.is_given = true;
    return operand;
  }
  static PyObject* const name = interned("__dlpack__");
  PyObject* method = PyObject_GetAttr(object, name);
  if (!method) {
    PyErr_Clear();
    const Ref type(PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(object)), "__name__"));
    PyErr_Format(PyExc_TypeError, "%s: expected a tensor (NumPy, PyTorch or another with __dlpack__), found %U",
                 role.text().c_str(), type.get());
    throw ErrorIsSet();
  }
  const Ref held(method);
  try {
    read_capsule(operand, capsule_of(of, method, stream_for(object, stream)));
  } catch (const ErrorIsSet&) {
    if (!PyErr_ExceptionMatches(PyExc_BufferError) && !PyErr_ExceptionMatches(PyExc_TypeError) &&
        !PyErr_ExceptionMatches(PyExc_RuntimeError))
      throw;
    return operand_of_bits(object, device, stream, role);
  }
  return operand;
}

}  // namespace cermet::python
