// Host half of quantize and dequantize.
#include "kernel/cuda/device/pointwise/quantize.hpp"

#include "kernel/cuda/pointwise/pointwise.hpp"
#include "kernel/cuda/pointwise/pointwise_region.hpp"
#include "op/operands.hpp"

namespace cermet::cuda::pointwise_quantize_file {
namespace {

bool is_dequantize(const Problem& p) { return p.op->kind == OpKind::dequantize; }
/// Where mode is "div" values were quantized by division, so they are dequantized by multiplication.
bool multiplies(const Problem& p) { return (p.attributes.text("mode") == "mul") != is_dequantize(p); }
bool is_grouped(const Problem& p) { return is_dequantize(p) && p.attributes.text("granularity") == "group"; }
int width_of(const Problem& p) { return vector_width({p.input(0).dtype, p.outputs[0].dtype, DType::f32}); }

std::vector<Program> programs(const Problem& p, const Config& config) {
  return tile_programs(
      "kernel/cuda/device/pointwise/quantize.cuh",
      [&](Tiling tiling) {
        const quantize::Config device{.tiling = tiling,
                                      .x = p.input(0).dtype,
                                      .y = p.outputs[0].dtype,
                                      .multiply = multiplies(p),
                                      .has_offset = p.has(op::quantize::offset),
                                      .offset = type_or_f32(p, op::quantize::offset),
                                      .has_zero_point = p.has(op::quantize::zero_point),
                                      .saturate = is_dequantize(p) || p.attributes.flag("saturate"),
                                      .grouped = is_grouped(p),
                                      .width = width_of(p)};
        return fmt::format("cermet::quantize::{}<cermet::quantize::Config{}>",
                           is_dequantize(p) ? "DequantizeTask" : "QuantizeTask", config_text(device));
      },
      TileChoice(config));
}

/// A scale as an operand that broadcasts to the quantized values: one number; per-token, with a last dimension of size
/// 1 added.
TensorView broadcast_view(const TensorView& view, bool per_token) {
  if (!per_token && view.elements() == 1) return {view.data, view.dtype, Shape{1}};
  if (!per_token) return view;
  TensorView column = view;
  column.shape.push_back(1);
  column.strides.push_back(1);
  return column;
}

Launcher bind(const Problem& p, const Config& config) {
  const bool per_token = is_dequantize(p) && p.attributes.text("granularity") == "token", grouped = is_grouped(p);
  return [per_token, width = width_of(p), vectors = TileChoice(config).vectors,
          group = grouped ? p.attributes.integer("group_size") : 0](const LaunchArgs& args) {
    const bool by_rows = per_token || group != 0;
    const TensorView scale =
        group != 0 ? args.inputs[op::quantize::scale] : broadcast_view(args.inputs[op::quantize::scale], by_rows);
    const bool has_offset = args.has(op::quantize::offset);
    const TensorView offset = !has_offset  ? scale
                              : group != 0 ? args.inputs[op::quantize::offset]
                                           : broadcast_view(args.inputs[op::quantize::offset], by_rows);
    const TensorView zero_point =
        args.has(op::quantize::zero_point) ? broadcast_view(args.inputs[op::quantize::zero_point], false) : scale;
    const TensorView* const operands[] = {&args.inputs[0], &scale, &offset, &zero_point, &args.outputs[0]};
    const StridedTiles strided(operands, width, vectors);
    for (std::int64_t launch = 0; launch < strided.launches(); ++launch)
      args.queue->run(strided.tiles().program, strided.tiles().items,
                      quantize::Params{strided.tiles().shape, strided.operand(0, launch), strided.operand(1, launch),
                                       strided.operand(2, launch), strided.operand(3, launch),
                                       strided.operand(4, launch), static_cast<std::uint32_t>(group)});
  };
}

std::vector<Config> configs(const Problem&) { return tile_configs(); }
double cost(const Region& region, const Config& config, const DeviceLimits& limits) {
  return tile_cost(region, TileChoice(config), limits);
}

constexpr const char* const summary = "a vector for each thread";

}  // namespace

extern const Kernel pointwise_quantize, pointwise_dequantize;
const Kernel pointwise_quantize = with_regions({.name = "pointwise.quantize",
                                                .op = OpKind::quantize,
                                                .summary = summary,
                                                .bind = bind,
                                                .programs = programs,
                                                .configs = configs,
                                                .cost = cost});
const Kernel pointwise_dequantize = with_regions({.name = "pointwise.dequantize",
                                                  .op = OpKind::dequantize,
                                                  .summary = summary,
                                                  .bind = bind,
                                                  .programs = programs,
                                                  .configs = configs,
                                                  .cost = cost});

}  // namespace cermet::cuda::pointwise_quantize_file
