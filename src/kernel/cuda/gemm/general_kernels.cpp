// The kernels of general.hpp.
#include "kernel/cuda/gemm/gate_cut.hpp"
#include "kernel/cuda/gemm/general.hpp"
#include "kernel/cuda/gemm/rest.hpp"

namespace cermet::cuda::gemm_general_kernels_file {
namespace {

using Kinds = GeneralProduct::Programs;

template <Kinds kinds>
Kernel make(const char* name, OpKind op, const char* summary) {
  return {.name = name,
          .op = op,
          .summary = summary,
          .fuses = true,
          .declines = GeneralProduct::declines,
          .bind = [](const Region& r, const Config& config) -> Launcher {
            return [product = GeneralProduct(r, kinds, config)](const LaunchArgs& args) { product.launch(args); };
          },
          .workspace = [](const Region& r, const Config& config,
                          int) { return GeneralProduct(r, kinds, config).workspace(); },
          .programs = [](const Region& r, const Config& config) { return GeneralProduct(r, kinds, config).programs(); },
          .configs = [](const Region&) { return GeneralProduct::configs(); },
          .cost = [](const Region& r, const Config& config,
                     const DeviceLimits& limits) { return GeneralProduct(r, kinds, config).seconds(limits); },
          .cut = gate_cut};
}

Kernel general(const char* name, OpKind op) {
  return make<Kinds::all>(
      name, op, "float32 multiply-adds (int8: byte dot products) for any types, layouts, scales and alignment");
}
Kernel tensor(const char* name, OpKind op) {
  Kernel kernel = make<Kinds::tensor>(name, op,
                                      "mma.sync fed by asynchronous copies, for every architecture; launches whose "
                                      "rows are not aligned run on the CUDA cores");
  kernel.declines = GeneralProduct::declines_tensor;
  return kernel;
}

}  // namespace

extern const Kernel gemm_linear_general, gemm_matmul_general, gemm_dual_linear_general, gemm_scaled_mm_general,
    gemm_grouped_linear_general;
const Kernel gemm_linear_general = general("gemm.linear.general", OpKind::linear);
const Kernel gemm_matmul_general = general("gemm.matmul.general", OpKind::matmul);
const Kernel gemm_dual_linear_general = general("gemm.dual_linear.general", OpKind::dual_linear);
const Kernel gemm_scaled_mm_general = general("gemm.scaled_mm.general", OpKind::scaled_mm);
const Kernel gemm_grouped_linear_general = with_rest(general("gemm.grouped_linear.general", OpKind::grouped_linear));

extern const Kernel gemm_linear_tensor, gemm_matmul_tensor, gemm_dual_linear_tensor, gemm_scaled_mm_tensor,
    gemm_grouped_linear_tensor;
const Kernel gemm_linear_tensor = tensor("gemm.linear.tensor", OpKind::linear);
const Kernel gemm_matmul_tensor = tensor("gemm.matmul.tensor", OpKind::matmul);
const Kernel gemm_dual_linear_tensor = tensor("gemm.dual_linear.tensor", OpKind::dual_linear);
const Kernel gemm_scaled_mm_tensor = tensor("gemm.scaled_mm.tensor", OpKind::scaled_mm);
const Kernel gemm_grouped_linear_tensor = with_rest(tensor("gemm.grouped_linear.tensor", OpKind::grouped_linear));

}  // namespace cermet::cuda::gemm_general_kernels_file
