// From a run-time element type, whichever it is, to a C++ type: for kernels of plain loops.
#pragma once

#include "base/dtype.hpp"
#include "base/error.hpp"
#include "format/fp8.hpp"
#include "format/half.hpp"

namespace cermet::cpu {

/// Calls body(T{}) with the C++ type of a number that is not fp8; booleans are std::uint8_t.
template <class Body>
decltype(auto) by_number_dtype(DType dtype, Body&& body) {
  switch (dtype) {
    case DType::boolean:
    case DType::u8: return body(std::uint8_t{});
    case DType::i8: return body(std::int8_t{});
    case DType::u16: return body(std::uint16_t{});
    case DType::i16: return body(std::int16_t{});
    case DType::u32: return body(std::uint32_t{});
    case DType::i32: return body(std::int32_t{});
    case DType::u64: return body(std::uint64_t{});
    case DType::i64: return body(std::int64_t{});
    case DType::f16: return body(format::f16{});
    case DType::bf16: return body(format::bf16{});
    case DType::f32: return body(float{});
    case DType::f64: return body(double{});
    default: break;
  }
  assertion_failed("a number that is not fp8", __FILE_NAME__, __LINE__);
}

/// The same for every type.
template <class Body>
decltype(auto) by_any_dtype(DType dtype, Body&& body) {
  if (dtype == DType::f8_e4m3) return body(format::e4m3{});
  if (dtype == DType::f8_e5m2) return body(format::e5m2{});
  return by_number_dtype(dtype, body);
}

}  // namespace cermet::cpu
