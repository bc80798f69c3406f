// The kernel of dots.hpp.
#include "kernel/cuda/gemm/dots.hpp"

namespace cermet::cuda::gemm_dots_kernels_file {

extern const Kernel gemm_linear_dots;
const Kernel gemm_linear_dots{
    .name = "gemm.linear.dots",
    .op = OpKind::linear,
    .summary =
        "float32 rows, at most 128 of them, and few columns, as of a router: the threads of a block share the "
        "reduction, so that all SMs have work",
    .fuses = true,
    .declines = DotsProduct::declines,
    .bind = [](const Region& region, const Config& config) -> Launcher {
      return [product = DotsProduct(region, config)](const LaunchArgs& args) { product.launch(args); };
    },
    .programs = [](const Region& region, const Config& config) { return DotsProduct(region, config).programs(); },
    .configs = [](const Region& region) { return DotsProduct(region).configs(); },
    .cost = [](const Region& region, const Config& config,
               const DeviceLimits& limits) { return DotsProduct(region, config).seconds(limits); },
    .model_error = {.recorded = 0.3}};

}  // namespace cermet::cuda::gemm_dots_kernels_file
