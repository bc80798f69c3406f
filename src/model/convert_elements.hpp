// Elements of weights in other types, on their way from a file into a model.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.hpp"

namespace cermet {

/// `count` elements of `from` as `to`; both f32, bf16 or f16, `from` also f64. Rounds to nearest even. From i64 to f32:
/// scales packed as an NPU reads them.
void convert_elements(DType from, const std::byte* source, DType to, std::byte* destination, std::int64_t count);

}  // namespace cermet
