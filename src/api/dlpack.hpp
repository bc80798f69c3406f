// DLPack tensors as views, and the checks of a caller's memory before a kernel sees it.
#pragma once

#include <dlpack/dlpack.h>

#include <optional>
#include <string>
#include <string_view>

#include "base/tensor.hpp"

namespace cermet::api {

/// What a tensor must be, and the words that name it in a message: "rms_norm: input 0 (x)".
struct Expectation {
  std::string_view op, role, operand;
  std::size_t index = 0;
  const TensorType* type = nullptr;
  const SymbolValues* symbols = nullptr;  ///< of the type's dimensions; null where all are constants
  const Shape* strides = nullptr;         ///< these exactly; null for any legal ones
  int dense_dims = 1;                     ///< trailing dimensions that must be contiguous among themselves
  bool is_output = false;                 ///< no two elements may share memory
  DLDevice device{kDLCPU, 0};             ///< where the memory must be
  bool or_host = false;                   ///< or in host memory
  bool is_touched = true;                 ///< the memory will be read or written, so it must be there
};

/// "cuda:1 (kDLCUDA)": a device in messages.
std::string text_of(DLDevice device);
/// An element type in messages: "f32", or where Cermet has none of the kind "DLPack complex64".
std::string text_of(DLDataType type);
/// The element type of a DLPack type code; nothing where Cermet has none. Plain bytes are u8.
std::optional<DType> dtype_of(DLDataType type);

/// The tensor as a view. Throws Error naming the operand: device, element type, rank, shape, strides, alignment, null
/// data. Allocates only to throw.
TensorView checked_view(const DLTensor& tensor, const Expectation& expected);

/// What is wrong with the strides of an operand, as "expected ...", or "" where they are legal: trailing dense_dims
/// contiguous, none negative, all addresses below 2^63, and for an output no two elements in one place. Strides of
/// dimensions of size 1 are free.
std::string_view stride_fault(const Shape& shape, const Shape& strides, int dense_dims, bool is_output);

/// First and one-past-last byte that a view touches; an empty range for no elements.
struct ByteRange {
  const std::byte *begin, *end;
  bool overlaps(const ByteRange& other) const { return begin < other.end && other.begin < end; }
};
ByteRange range_of(const TensorView& view);
/// Whether two views put each element of the same index into the same bytes.
bool coincide(const TensorView& a, const TensorView& b);

}  // namespace cermet::api
