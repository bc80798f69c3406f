#include "layout.hpp"

#include <cstdint>
#include <utility>

namespace cermet::python {
namespace {

bool is_aligned(const DLTensor& t) {
  const std::uintptr_t bytes = t.dtype.bits >= 8 ? t.dtype.bits / 8u : 1u;
  return (reinterpret_cast<std::uintptr_t>(t.data) + t.byte_offset) % bytes == 0;
}

/// The last `count` dimensions, of which `swapped` has the last two the other way round.
bool is_dense(const DLTensor& t, int count, bool swapped) {
  std::int64_t dense = 1;
  for (int back = 0; back < count && back < t.ndim; ++back) {
    const int axis = t.ndim - 1 - (swapped && back < 2 ? 1 - back : back);
    if (t.shape[axis] != 1 && t.strides[axis] != dense) return false;
    dense *= t.shape[axis];
  }
  return true;
}

}  // namespace

bool is_plain(const DLTensor& t) {
  if (!is_aligned(t)) return false;
  return !t.strides || is_dense(t, t.ndim, false);
}

bool is_readable(const DLTensor& t, int dense_dims, bool may_lie_transposed) {
  if (!is_aligned(t)) return false;
  if (!t.strides) return true;
  for (int axis = 0; axis < t.ndim; ++axis) {
    if (t.shape[axis] == 0) return true;
    if (t.shape[axis] != 1 && t.strides[axis] < 0) return false;
  }
  return is_dense(t, dense_dims, false) ||
         (may_lie_transposed && t.ndim >= 2 && t.shape[t.ndim - 2] != 1 && is_dense(t, dense_dims, true));
}

ReadableOperands::ReadableOperands(PyObject* tensors, DLDevice device, long long stream, const char* of,
                                   unsigned long long kept) {
  read(tensors, device, stream, of);
  unsigned long long mask = 0;
  for (std::size_t i = 0; i < operands_.size() && i < 64; ++i)
    if (operands_[i].is_given && !is_plain(operands_[i].tensor) && !is_readable(operands_[i].tensor, 1, false))
      mask |= 1ull << i;
  mask &= ~kept;
  if (mask == 0) return;
  const Ref bits(PyLong_FromUnsignedLongLong(mask)), on(PyLong_FromLongLong(stream));
  Ref made(PyObject_CallFunctionObjArgs(python::operands("copied"), tensors, bits.get(), on.get(), nullptr));
  operands_.clear();
  copies_ = std::move(made);
  read(copies_.get(), device, stream, of);
}

void ReadableOperands::read(PyObject* tensors, DLDevice device, long long stream, const char* of) {
  const auto count = static_cast<std::size_t>(PyTuple_Size(tensors));
  operands_.reserve(count);
  tensors_.clear();
  for (std::size_t i = 0; i < count; ++i) {
    operands_.push_back(
        operand_of(PyTuple_GetItem(tensors, static_cast<Py_ssize_t>(i)), device, stream, {of, "input", i}));
    tensors_.push_back(operands_.back().get());
  }
}

}  // namespace cermet::python
