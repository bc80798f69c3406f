// The kernels of hopper.hpp.
#include "kernel/cuda/gemm/hopper.hpp"

namespace cermet::cuda {
namespace {

constexpr const char* const summary = "warp-specialised wgmma fed by bulk tensor copies, for Hopper; float32 rows are split into three bfloat16 parts";

Launcher bind(const Region& region, const Config& config) {
  return [product = HopperProduct(region, config)](const LaunchArgs& args) { product.launch(args); };
}
std::vector<Program> programs(const Region& region, const Config& config) { return HopperProduct(region, config).programs(); }
std::int64_t workspace(const Region& region, int) { return HopperProduct(region).workspace(); }
std::vector<Config> configs(const Region& region) { return HopperProduct(region).configs(); }
double cost(const Region& region, const Config& config, const DeviceLimits& limits) { return HopperProduct(region, config).seconds(limits); }

Kernel kernel(const char* name, OpKind op) {
  return {.name = name,
          .op = op,
          .summary = summary,
          .fuses = true,
          .declines = HopperProduct::declines,
          .bind = bind,
          .workspace = workspace,
          .programs = programs,
          .configs = configs,
          .cost = cost};
}

}  // namespace

extern const Kernel gemm_linear_hopper, gemm_matmul_hopper, gemm_dual_linear_hopper, gemm_scaled_mm_hopper, gemm_grouped_linear_hopper;
const Kernel gemm_linear_hopper = kernel("gemm.linear.hopper", OpKind::linear);
const Kernel gemm_matmul_hopper = kernel("gemm.matmul.hopper", OpKind::matmul);
const Kernel gemm_dual_linear_hopper = kernel("gemm.dual_linear.hopper", OpKind::dual_linear);
const Kernel gemm_scaled_mm_hopper = kernel("gemm.scaled_mm.hopper", OpKind::scaled_mm);
const Kernel gemm_grouped_linear_hopper = kernel("gemm.grouped_linear.hopper", OpKind::grouped_linear);

}  // namespace cermet::cuda
