// The place of a row's largest element, for kernels that need it inside.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.hpp"

namespace cermet::cpu {

/// Lowest index of the largest of `length` > 0 real elements; a NaN is larger than everything.
std::int64_t argmax_of_row(const std::byte* row, DType dtype, std::int64_t length);

}  // namespace cermet::cpu
