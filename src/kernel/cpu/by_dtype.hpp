// From a run-time element type to a C++ type.
#pragma once

#include "base/dtype.hpp"
#include "base/error.hpp"
#include "format/half.hpp"

namespace cermet::cpu {

/// Calls body(T{}) with the C++ type of a real dtype: float, bf16 or f16.
template <class Body>
decltype(auto) by_real_dtype(DType dtype, Body&& body) {
  switch (dtype) {
    case DType::f32: return body(float{});
    case DType::bf16: return body(format::bf16{});
    case DType::f16: return body(format::f16{});
    default: break;
  }
  assertion_failed("a real element type", __FILE_NAME__, __LINE__);
}

}  // namespace cermet::cpu
