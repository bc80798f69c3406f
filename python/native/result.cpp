#include "result.hpp"

namespace cermet::python {
namespace {

void set_error(void*, const char* kind, const char* message) {
  PyErr_Format(PyExc_RuntimeError, "%s: %s", kind, message);
}

Ref shape_tuple(const cermet_call_result& type) {
  Ref shape(PyTuple_New(type.ndim));
  for (int i = 0; i < type.ndim; ++i)
    require_set(PyTuple_SetItem(shape.get(), i, Ref(PyLong_FromLongLong(type.shape[i])).release()) == 0);
  return shape;
}

}  // namespace

Result::Result(const cermet_call_result& type, PyObject* sample, const Operand& sample_operand, DLDevice device) {
  if (sample_operand.api) {
    auto* shape = const_cast<std::int64_t*>(type.shape);
    DLTensor prototype{nullptr, device, type.ndim, dlpack_type(type.dtype), shape, nullptr, 0};
    if (sample_operand.api->allocate(&prototype, &managed_, nullptr, set_error) == 0) {
      api_ = sample_operand.api;
      return;
    }
    PyErr_Clear();  // an element type that its allocator does not have, or no memory, which the other way reports
  }
  // (memory, what the caller gets): these differ where the framework does not export the element type.
  const Ref shape = shape_tuple(type), dtype = text(type.dtype);
  const Ref place(Py_BuildValue("(ii)", static_cast<int>(device.device_type), static_cast<int>(device.device_id)));
  const Ref made(
      PyObject_CallFunctionObjArgs(bridge("empty_like"), sample, shape.get(), dtype.get(), place.get(), nullptr));
  PyObject *memory = nullptr, *object = nullptr;
  require_set(PyArg_ParseTuple(made.get(), "OO", &memory, &object) != 0);
  operand_ = operand_of(memory, device, -1, {"result", "tensor", 0});
  operand_.tensor.dtype = dlpack_type(type.dtype);
  if (!operand_.owner) operand_.owner = Ref::to(memory);
  object_ = Ref::to(object);
}

Result::Result(Result&& other) noexcept
    : object_(std::move(other.object_)),
      operand_(std::move(other.operand_)),
      managed_(std::exchange(other.managed_, nullptr)),
      api_(other.api_) {}

Result::~Result() {
  if (managed_ && managed_->deleter) managed_->deleter(managed_);
}

PyObject* Result::take() {
  if (!managed_) return object_.release();
  void* object = nullptr;
  ManagedTensorVersioned* given = std::exchange(managed_, nullptr);  // taken over also where it fails
  require_set(api_->object_from_managed(given, &object) == 0);
  return static_cast<PyObject*>(object);
}

}  // namespace cermet::python
