// The kernels of stream.hpp.
#include "kernel/cuda/gemm/stream.hpp"

namespace cermet::cuda::gemm_stream_kernels_file {
namespace {

Kernel kernel(const char* name, OpKind op, double model_error) {
  return {
      .name = name,
      .op = op,
      .summary =
          "up to 64 rows on Hopper: weights stream once through the tensor cores, where rows of x are the columns of "
          "wgmma",
      .fuses = true,
      .declines = StreamProduct::declines,
      .bind = [](const Region& region, const Config& config) -> Launcher {
        return [product = StreamProduct(region, config)](const LaunchArgs& args) { product.launch(args); };
      },
      .workspace = [](const Region& region, int) { return StreamProduct(region).workspace(); },
      .programs = [](const Region& region, const Config& config) { return StreamProduct(region, config).programs(); },
      .configs = [](const Region& region) { return StreamProduct(region).configs(); },
      .cost = [](const Region& region, const Config& config,
                 const DeviceLimits& limits) { return StreamProduct(region, config).seconds(limits); },
      .model_error = {.recorded = model_error}};
}

}  // namespace

extern const Kernel gemm_linear_stream, gemm_dual_linear_stream, gemm_scaled_mm_stream;
const Kernel gemm_linear_stream = kernel("gemm.linear.stream", OpKind::linear, 0.15);
const Kernel gemm_dual_linear_stream = kernel("gemm.dual_linear.stream", OpKind::dual_linear, 0.15);
const Kernel gemm_scaled_mm_stream = kernel("gemm.scaled_mm.stream", OpKind::scaled_mm, 0.2);

}  // namespace cermet::cuda::gemm_stream_kernels_file
