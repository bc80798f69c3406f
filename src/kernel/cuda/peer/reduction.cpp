#include "kernel/cuda/peer/reduction.hpp"

#include "kernel/cuda/task.hpp"

namespace cermet::cuda {

std::string peer_reduction_config(DType dtype, Reduction reduction, int ranks, int width) {
  const char* kind = "sum";
  switch (reduction) {
    case Reduction::sum: break;
    case Reduction::mean: kind = "mean"; break;
    case Reduction::prod: kind = "prod"; break;
    case Reduction::max: kind = "max"; break;
    case Reduction::min: kind = "min"; break;
  }
  return fmt::format(
      "cermet::peer::ReduceConfig{{.reduction = {{.type = {}, .kind = cermet::reduce::Kind::{}, .ranks = {}}}, .width "
      "= {}}}",
      device_name(dtype), kind, ranks, width);
}

}  // namespace cermet::cuda
