// The sets of element types that rows of pointwise.inc name.
#pragma once

#include "base/dtype.hpp"

namespace cermet::pointwise_types {

inline constexpr DTypeSet real = dtypes::real | DTypeSet{DType::f64};
inline constexpr DTypeSet natural{DType::u8, DType::u16, DType::u32, DType::u64};
inline constexpr DTypeSet whole = dtypes::integer;
inline constexpr DTypeSet number = real | whole;
inline constexpr DTypeSet truth{DType::boolean};
inline constexpr DTypeSet any = number | truth;

}  // namespace cermet::pointwise_types
