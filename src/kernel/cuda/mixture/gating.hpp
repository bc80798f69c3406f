// What programs that choose experts are given, alone or before a product.
#pragma once

#include "base/tensor.hpp"
#include "kernel/cuda/device/mixture/gating.hpp"
#include "op/schema/problem.hpp"

namespace cermet::cuda {

gating::Config gating_config(const Problem& p, int threads);

/// Its operands. `bias` and `ids` may be null.
gating::Params gating_params(const TensorView& logits, const TensorView* bias, const TensorView& weights,
                             const TensorView* ids, float scale);

}  // namespace cermet::cuda
