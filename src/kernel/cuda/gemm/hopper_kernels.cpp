// The kernels of hopper.hpp.
#include "kernel/cuda/gemm/gate_cut.hpp"
#include "kernel/cuda/gemm/hopper.hpp"
#include "kernel/cuda/gemm/rest.hpp"

namespace cermet::cuda::gemm_hopper_kernels_file {
namespace {

constexpr const char* const summary =
    "warp-specialised wgmma fed by bulk tensor copies, for Hopper; float32 rows are split into three bfloat16 parts";

/// Of tiles for a known number of rows, which models put in the order of bench/results/h200/compare/hopper-tiles.json
/// where they say that one takes less by this.
constexpr double tiles_error = 0.1;

Kernel kernel(const char* name, OpKind op, ModelError error = {}, HopperTiles tiles = HopperTiles::few) {
  const auto product = [tiles](const Region& region, const Config& config) {
    return HopperProduct(region, config, {}, tiles);
  };
  return {
      .name = name,
      .op = op,
      .summary = summary,
      .fuses = true,
      .declines = HopperProduct::declines,
      .bind = [product](const Region& region, const Config& config) -> Launcher {
        return [product = product(region, config)](const LaunchArgs& args) { product.launch(args); };
      },
      .workspace = [product](const Region& region, int) { return product(region, {}).workspace(); },
      .programs = [product](const Region& region, const Config& config) { return product(region, config).programs(); },
      .configs = [product](const Region& region) { return product(region, {}).configs(); },
      .space = [product](const Region& region) { return product(region, {}).space(); },
      .cost = [product](const Region& region, const Config& config,
                        const DeviceLimits& limits) { return product(region, config).seconds(limits); },
      .model_error = error,
      .cut = gate_cut};
}

}  // namespace

extern const Kernel gemm_linear_hopper, gemm_matmul_hopper, gemm_dual_linear_hopper, gemm_scaled_mm_hopper,
    gemm_grouped_linear_hopper;
const Kernel gemm_linear_hopper = kernel("gemm.linear.hopper", OpKind::linear,
                                         {.recorded = 0.15, .of_configs = tiles_error}, HopperTiles::one_of_many);
const Kernel gemm_matmul_hopper = kernel("gemm.matmul.hopper", OpKind::matmul);
const Kernel gemm_dual_linear_hopper = kernel("gemm.dual_linear.hopper", OpKind::dual_linear, {.recorded = 0.15});
const Kernel gemm_scaled_mm_hopper =
    kernel("gemm.scaled_mm.hopper", OpKind::scaled_mm, {.recorded = 0.2, .of_configs = tiles_error});
const Kernel gemm_grouped_linear_hopper = with_rest(
    kernel("gemm.grouped_linear.hopper", OpKind::grouped_linear, {.assumes = ModelError::Assumes::group_lengths}),
    [](const Region& region, const Config& config) -> MakesRest {
      HopperProduct product(region, config);
      if (!product.makes_rest()) return nullptr;
      return [product = std::move(product)](const LaunchArgs& args) { return product.makes_rest(args); };
    });

/// The product of a convolution, whose rows are the places of images: most often their number is known.
extern const Kernel gemm_places_hopper;
const Kernel gemm_places_hopper = kernel("gemm.linear.hopper", OpKind::linear, {}, HopperTiles::one);

}  // namespace cermet::cuda::gemm_hopper_kernels_file
