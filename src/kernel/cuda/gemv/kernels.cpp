// The kernels of gemv.hpp.
#include "kernel/cuda/gemm/rest.hpp"
#include "kernel/cuda/gemv/gemv.hpp"

namespace cermet::cuda::gemv_kernels_file {
namespace {

std::vector<Program> programs(const Region& region, const Config& config) { return FewRows(region, config).programs(); }
double cost(const Region& region, const Config& config, const DeviceLimits& limits) { return FewRows(region, config).seconds(region, limits); }
Launcher bind(const Region& region, const Config& config) {
  return [product = FewRows(region, config)](const LaunchArgs& args) { product.launch(args); };
}

Kernel plain(const char* name, OpKind op) {
  return {.name = name,
          .op = op,
          .summary = "one row at a time: weights stream through shared memory, rows stay in registers",
          .fuses = true,
          .declines = FewRows::declines,
          .bind = bind,
          .programs = programs,
          .configs = FewRows::configs,
          .space = FewRows::space,
          .cost = cost};
}
Kernel with_front(const char* name, OpKind op) {
  Kernel kernel = plain(name, op);
  kernel.summary = "the same, with what makes the row before it: every block normalizes, quantizes or finds the row on its way into registers";
  kernel.declines = FewRows::declines_front;
  return kernel;
}

}  // namespace

extern const Kernel gemv_linear, gemv_dual_linear, gemv_scaled_mm, gemv_grouped_linear, gemv_norm_linear, gemv_norm_dual_linear, gemv_front_scaled_mm,
    gemv_front_grouped_linear;
const Kernel gemv_norm_linear = with_front("gemv.norm_linear", OpKind::linear);
const Kernel gemv_norm_dual_linear = with_front("gemv.norm_dual_linear", OpKind::dual_linear);
const Kernel gemv_front_scaled_mm = with_front("gemv.front_scaled_mm", OpKind::scaled_mm);
const Kernel gemv_front_grouped_linear = with_rest(with_front("gemv.front_grouped_linear", OpKind::grouped_linear));
const Kernel gemv_linear = plain("gemv.linear", OpKind::linear);
const Kernel gemv_dual_linear = plain("gemv.dual_linear", OpKind::dual_linear);
const Kernel gemv_scaled_mm = plain("gemv.scaled_mm", OpKind::scaled_mm);
const Kernel gemv_grouped_linear = with_rest(plain("gemv.grouped_linear", OpKind::grouped_linear));

}  // namespace cermet::cuda::gemv_kernels_file
