// What kernels of cast share with its definition.
#pragma once

#include "format/fp8_variants.hpp"
#include "op/schema/problem.hpp"

namespace cermet {

/// The attribute `rounding`.
format::Rounding cast_rounding(const Attributes& attributes);

}  // namespace cermet
