// Host half of the gated activations: silu_and_mul, gelu_and_mul, swiglu_clamped.
#include "kernel/cuda/device/pointwise/gated.hpp"

#include "kernel/cuda/pointwise/pointwise.hpp"

namespace cermet::cuda::pointwise_gated_file {
namespace {

gated::Function function_of(const Problem& p) {
  using enum gated::Function;
  if (p.op->kind == OpKind::silu_and_mul) return silu;
  if (p.op->kind == OpKind::swiglu_clamped) return clamped;
  const std::string& form = p.attributes.text("approximate");
  return form == "tanh" ? gelu_tanh : form == "quick" ? gelu_quick : gelu;
}

int width_of(const Problem& p) { return tile_width(std::max(size_of(p.input(0).dtype), size_of(p.outputs[0].dtype))); }

int own_blocks(const Problem& p) { return function_of(p) == gated::Function::silu ? 4 : 3; }

std::vector<Program> programs(const Problem& p, const Config& config) {
  return tile_programs(
      "kernel/cuda/device/pointwise/gated.cuh",
      [&](Tiling tiling) {
        const gated::Config device{.tiling = tiling,
                                   .function = function_of(p),
                                   .layout = {.gate_first = p.attributes.text("gate") == "first",
                                              .interleaved = p.attributes.flag("interleaved")},
                                   .x = p.input(0).dtype,
                                   .y = p.outputs[0].dtype,
                                   .width = width_of(p)};
        return fmt::format("cermet::gated::Task<cermet::gated::Config{}>", config_text(device));
      },
      TileChoice(config, own_blocks(p)));
}

Launcher bind(const Problem& p, const Config& config) {
  gated::Params bound{};
  if (p.op->kind == OpKind::swiglu_clamped) {
    bound.alpha = static_cast<float>(p.attributes.number("alpha"));
    bound.limit = static_cast<float>(p.attributes.number("limit"));
    bound.up_offset = static_cast<float>(p.attributes.number("up_offset"));
  }
  return [bound, width = width_of(p), vectors = TileChoice(config).vectors](const LaunchArgs& args) {
    const TensorView &x = args.inputs[0], &y = args.outputs[0];
    const RowView operands[] = {{&x}, {&y}};
    const StridedRows strided(operands);
    const std::int64_t features = y.shape.back();
    if (features == 0) return;
    const bool aligned = strided.aligned(0, width) && strided.aligned(1, width) && features % width == 0;
    const Tiles tiles(strided, features, width, aligned, vectors);
    gated::Params params = bound;
    params.shape = tiles.shape;
    for (std::int64_t launch = 0; launch < strided.launches(); ++launch) {
      params.x = strided.operand(0, launch);
      params.y = {strided.operand(1, launch), 1};
      args.queue->run(tiles.program, tiles.items, params);
    }
  };
}

std::vector<Config> configs(const Problem& p) { return tile_configs(own_blocks(p)); }
ConfigSpace space(const Problem& p) { return tile_space(configs(p)); }
double cost(const Region& region, const Config& config, const DeviceLimits& limits) {
  return tile_cost(region, TileChoice(config, own_blocks(region.problem())), limits);
}

constexpr const char* const summary = "a vector of each half for each thread";

Kernel gated_kernel(std::string name, OpKind op) {
  return {.name = std::move(name),
          .op = op,
          .summary = summary,
          .bind = bind,
          .programs = programs,
          .configs = configs,
          .space = space,
          .cost = cost};
}

}  // namespace

extern const Kernel pointwise_silu_and_mul, pointwise_gelu_and_mul, pointwise_swiglu_clamped;
const Kernel pointwise_silu_and_mul = gated_kernel("pointwise.silu_and_mul", OpKind::silu_and_mul);
const Kernel pointwise_gelu_and_mul = gated_kernel("pointwise.gelu_and_mul", OpKind::gelu_and_mul);
const Kernel pointwise_swiglu_clamped = gated_kernel("pointwise.swiglu_clamped", OpKind::swiglu_clamped);

}  // namespace cermet::cuda::pointwise_gated_file
