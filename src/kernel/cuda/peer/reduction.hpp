// How device code spells a reduction over ranks.
#pragma once

#include <string>

#include "base/dtype.hpp"
#include "op/reduction.hpp"

namespace cermet::cuda {

/// "cermet::peer::ReduceConfig{..}"; `width`: elements of a vector.
std::string peer_reduction_config(DType dtype, Reduction reduction, int ranks, int width);

}  // namespace cermet::cuda
