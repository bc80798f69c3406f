#include "kernel/cuda/peer/reduction.hpp"

#include "kernel/cuda/config_text.hpp"
#include "kernel/cuda/device/peer/collective.hpp"

namespace cermet::cuda {

std::string peer_reduction_config(DType dtype, Reduction reduction, int ranks, int width) {
  auto kind = reduce::Kind::sum;
  switch (reduction) {
    case Reduction::sum: break;
    case Reduction::mean: kind = reduce::Kind::mean; break;
    case Reduction::prod: kind = reduce::Kind::prod; break;
    case Reduction::max: kind = reduce::Kind::max; break;
    case Reduction::min: kind = reduce::Kind::min; break;
  }
  const peer::ReduceConfig config{.reduction = {.type = dtype, .kind = kind, .ranks = ranks}, .width = width};
  return "cermet::peer::ReduceConfig" + config_text(config);
}

}  // namespace cermet::cuda
