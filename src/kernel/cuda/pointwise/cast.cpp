// Host half of cast.
#include "kernel/cuda/device/pointwise/cast.hpp"

#include "kernel/cuda/pointwise/pointwise.hpp"
#include "kernel/cuda/pointwise/pointwise_region.hpp"
#include "op/cast.hpp"

namespace cermet::cuda::pointwise_cast_file {
namespace {

int width_of(const Problem& p) { return tile_width(std::max(size_of(p.input(0).dtype), size_of(p.outputs[0].dtype))); }

std::vector<Program> programs(const Problem& p, const Config& config) {
  return tile_programs(
      "kernel/cuda/device/pointwise/cast.cuh",
      [&](Tiling tiling) {
        const cast::Config device{.tiling = tiling,
                                  .x = p.input(0).dtype,
                                  .y = p.outputs[0].dtype,
                                  .rounding = cast_rounding(p.attributes),
                                  .width = width_of(p)};
        return fmt::format("cermet::cast::Task<cermet::cast::Config{}>", config_text(device));
      },
      TileChoice(config));
}

Launcher bind(const Problem& p, const Config& config) {
  return [width = width_of(p), vectors = TileChoice(config).vectors](const LaunchArgs& args) {
    const TensorView* const operands[] = {&args.inputs[0], &args.outputs[0]};
    const StridedTiles strided(operands, width, vectors);
    for (std::int64_t launch = 0; launch < strided.launches(); ++launch)
      args.queue->run(strided.tiles().program, strided.tiles().items,
                      cast::Params{strided.tiles().shape, strided.operand(0, launch), strided.operand(1, launch)});
  };
}

std::vector<Config> configs(const Problem&) { return tile_configs(); }
double cost(const Region& region, const Config& config, const DeviceLimits& limits) {
  return tile_cost(region, TileChoice(config), limits);
}

}  // namespace

extern const Kernel pointwise_cast;
const Kernel pointwise_cast = with_regions({.name = "pointwise.cast",
                                            .op = OpKind::cast,
                                            .summary = "a vector for each thread",
                                            .bind = bind,
                                            .programs = programs,
                                            .configs = configs,
                                            .cost = cost});

}  // namespace cermet::cuda::pointwise_cast_file
