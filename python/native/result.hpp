// Results in memory of the caller's framework.
#pragma once

#include <cermet/get_op.h>

#include "operand.hpp"

namespace cermet::python {

/// A result: the Python object to return, and its memory. With PyTorch the object is made after the run, of what its
/// allocator gave.
class Result {
 public:
  /// New memory like that of `sample`, which is a tensor on `device`. Throws ErrorIsSet.
  Result(const cermet_call_result& type, PyObject* sample, const Operand& sample_operand, DLDevice device);
  /// Memory of the caller's: given as `out`, or the operand that a result shares. `operand` is what `object` was read
  /// as.
  Result(PyObject* object, Operand operand) : object_(Ref::to(object)), operand_(std::move(operand)) {}
  Result(Result&& other) noexcept;
  Result& operator=(Result&&) = delete;
  ~Result();

  DLTensor* tensor() { return managed_ ? &managed_->tensor : operand_.get(); }
  /// The object for the caller, once. A new reference.
  PyObject* take();

 private:
  Ref object_;
  Operand operand_;
  ManagedTensorVersioned* managed_ = nullptr;
  const ExchangeApi* api_ = nullptr;
};

}  // namespace cermet::python
