// Conversion of runs of elements between the real element types, one rounding to nearest even.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.hpp"

namespace cermet::cpu {

/// Converts `count` elements; the runs do not overlap.
using RunConverter = void (*)(const std::byte* from, std::byte* to, std::int64_t count);

/// The converter between two of f32, bf16 and f16 for the active instruction set; equal types copy bytes.
RunConverter real_converter(DType from, DType to);

}  // namespace cermet::cpu
