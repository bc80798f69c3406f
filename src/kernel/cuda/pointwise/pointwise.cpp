// Host half of every elementwise operator.
#include "kernel/cuda/pointwise/pointwise.hpp"

#include "kernel/cuda/device/pointwise/pointwise.hpp"
#include "kernel/cuda/pointwise/pointwise_region.hpp"

namespace cermet::cuda::pointwise_pointwise_file {
namespace {

int width_of(const Problem& p) { return tile_width(std::max(size_of(p.input(0).dtype), size_of(p.outputs[0].dtype))); }

/// Types that only imported graphs compute in: one program for aligned launches and others, so that half as many are
/// compiled.
bool is_plain(const Problem& p) {
  constexpr DTypeSet own = dtypes::real | dtypes::index | DTypeSet{DType::boolean};
  return !own.contains(p.input(0).dtype);
}

std::vector<Program> programs(const Problem& p, const Config& config) {
  std::vector<Program> list = tile_programs(
      "kernel/cuda/device/pointwise/pointwise.cuh",
      [&](Tiling tiling) {
        const pointwise::Config device{.tiling = tiling,
                                       .in = p.input(0).dtype,
                                       .out = p.outputs[0].dtype,
                                       .width = width_of(p),
                                       .binary = p.inputs.size() > 1};
        return fmt::format("cermet::pointwise::Task<cermet::pointwise::{}_row, cermet::pointwise::Config{}>",
                           p.op->name, config_text(device));
      },
      TileChoice(config));
  if (is_plain(p)) list.front() = list.back();
  return list;
}

Launcher bind(const Problem& p, const Config& config) {
  std::array<double, 2> parameters{};
  std::ranges::copy(p.numbers(), parameters.begin());
  return [parameters, width = width_of(p),
          vectors = is_plain(p) ? 1 : TileChoice(config).vectors](const LaunchArgs& args) {
    const TensorView &a = args.inputs[0], &b = args.has(1) ? args.inputs[1] : a;
    const TensorView* const operands[] = {&a, &b, &args.outputs[0]};
    const StridedTiles strided(operands, width, vectors);
    pointwise::Params params{strided.tiles().shape,
                             {},
                             {},
                             {},
                             {static_cast<float>(parameters[0]), static_cast<float>(parameters[1])},
                             {parameters[0], parameters[1]}};
    for (std::int64_t launch = 0; launch < strided.launches(); ++launch) {
      params.a = strided.operand(0, launch);
      params.b = strided.operand(1, launch);
      params.y = strided.operand(2, launch);
      args.queue->run(strided.tiles().program, strided.tiles().items, params);
    }
  };
}

std::vector<Config> configs(const Problem& p) { return is_plain(p) ? std::vector<Config>(1) : tile_configs(); }
double cost(const Region& region, const Config& config, const DeviceLimits& limits) {
  return tile_cost(region, TileChoice(config), limits);
}

}  // namespace

#define UNARY(op_name, ...)                                                                           \
  extern const Kernel pointwise_##op_name;                                                            \
  const Kernel pointwise_##op_name = with_regions({.name = "pointwise." #op_name,                     \
                                                   .op = OpKind::op_name,                             \
                                                   .summary = "a vector of 16 bytes for each thread", \
                                                   .bind = bind,                                      \
                                                   .programs = programs,                              \
                                                   .configs = configs,                                \
                                                   .cost = cost});
#define UNARY1(name, ...) UNARY(name, )
#define UNARY2(name, ...) UNARY(name, )
#define BINARY(name, ...) UNARY(name, )
#include "op/pointwise.inc"

}  // namespace cermet::cuda::pointwise_pointwise_file
