// A type in a word, where the dimensions are given in braces.
#pragma once

#include <utility>

#include "base/tensor.hpp"

namespace cermet {

inline TensorType type(DType dtype, Dims dims) { return {dtype, std::move(dims)}; }

}  // namespace cermet
