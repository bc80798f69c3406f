// How the rows of norms lie over threads, for every kernel whose results have the bits of these.
#pragma once

#include "kernel/cuda/rowwise/rowwise.hpp"

namespace cermet::cuda {

RowNeeds norm_needs(const Problem& p);        ///< rms_norm, add_rms_norm, layer_norm
RowNeeds norm_quant_needs(const Problem& p);  ///< rms_norm_quant, add_rms_norm_quant

}  // namespace cermet::cuda
