// The usual case of a checked tensor, recognized by comparisons alone: dense memory of a known type and shape, where it
// must be.
#pragma once

#include <dlpack/dlpack.h>

#include "base/tensor.hpp"

namespace cermet::api {

/// The DLPack type of an element type: as DLPack 0.6 has it (bytes for bool and fp8), and as 1.x does.
DLDataType dl_type_of(DType dtype);
DLDataType newer_dl_type_of(DType dtype);

inline bool same(DLDataType a, DLDataType b) { return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes; }

struct PlainTensor {
  TensorView view;         ///< dense; without data
  std::int64_t bytes = 0;  ///< 0: no tensor is plain, and all take the long way of checked_view()
  DLDataType type{}, newer{};

  PlainTensor() = default;
  /// Throws Error(out_of_memory) where the bytes overflow.
  PlainTensor(DType dtype, const Shape& shape)
      : view(nullptr, dtype, shape),
        bytes(dense_bytes(dtype, shape)),
        type(dl_type_of(dtype)),
        newer(newer_dl_type_of(dtype)) {}

  /// Whether checked_view() would take the tensor as dense memory. False says nothing.
  bool matches(const DLTensor& t, DLDevice device) const {
    const int rank = view.shape.rank();
    if (bytes == 0 || !t.data || t.ndim != rank || !(same(t.dtype, type) || same(t.dtype, newer))) return false;
    if (t.device.device_type != device.device_type ||
        (t.device.device_id != device.device_id && device.device_type != kDLCPU))
      return false;
    if (rank > 0 && !t.shape) return false;
    for (int axis = 0; axis < rank; ++axis)
      if (t.shape[axis] != view.shape[axis]) return false;
    for (int axis = 0; t.strides && axis < rank; ++axis)
      if (t.strides[axis] != view.strides[axis] && view.shape[axis] != 1) return false;
    return (reinterpret_cast<std::uintptr_t>(t.data) + t.byte_offset) % (type.bits / 8u) == 0;
  }
};

}  // namespace cermet::api
