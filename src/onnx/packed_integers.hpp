// Elements of less than a byte, which files pack: they are held in bytes from the import on.
#pragma once

#include <cstdint>
#include <string>

#include "base/dtype.hpp"

namespace cermet::onnx {

/// Bits of an element of a TensorProto.DataType where it is packed (int4, uint4, int2, uint2, float4e2m1), else 0.
int packed_bits(std::int64_t code);
/// Bytes of so many packed elements.
std::int64_t packed_bytes(std::int64_t elements, int bits);
/// One byte an element: i8 or u8, and for float4e2m1 the same number in f8_e4m3. The first element is in a byte's low
/// bits.
std::string unpacked(const std::string& packed, std::int64_t elements, std::int64_t code);

}  // namespace cermet::onnx
