// Host half of silu_and_mul_quant and dequant_swiglu_quant.
#include "kernel/cuda/device/rowwise/gated_quant.hpp"

#include "kernel/cuda/narrow.hpp"
#include "kernel/cuda/rowwise/codes.hpp"
#include "kernel/cuda/rowwise/row_configs.hpp"

namespace cermet::cuda::rowwise_quant_gated_file {
namespace {

/// Where the operands of the two operators are, and how they quantize.
struct GatedQuant {
  static constexpr std::size_t none = RowCodes::none;
  std::size_t weight_scale = none, act_scale = none, bias = none, smooth = 1;
  bool gate_first = true, interleaved = false;
  RowCodes codes;

  explicit GatedQuant(const Problem& p) : codes{.format = code_format(p.attributes)} {
    if (p.op->kind == OpKind::silu_and_mul_quant) {
      gate_first = p.attributes.text("gate") == "first";
      interleaved = p.attributes.flag("interleaved");
      codes.groups = p.attributes.text("granularity") == "group";
      codes.scale = 2;
      codes.offset = 3;
      codes.divide = p.attributes.text("mode") == "div";
      return;
    }
    weight_scale = 1;
    act_scale = 2;
    bias = 3;
    smooth = 4;
    gate_first = p.attributes.text("activate") == "left";
    if (p.attributes.text("quantization") != "static") return;
    codes.scale = smooth;  // static: the factors are the scale
    smooth = none;
    codes.offset = 5;
    codes.divide = false;
  }
};

std::int64_t features_of(const Problem& p) { return constant_columns(p) / 2; }

RowNeeds needs_of(const Problem& p) {
  const RowTuning tuning{.elements = size_of(p.input(0).dtype) == 2 ? 32 : 16};
  return {.columns = features_of(p),
          .width = vector_width({p.input(0).dtype}),
          .group = GatedQuant(p).codes.group(p, features_of(p)),
          .short_rows = tuning,
          .long_rows = tuning,
          .few_cluster = few_cluster(p.target),
          .target = p.target};
}

std::vector<Program> programs(const Problem& p, const Config& config) {
  const GatedQuant op(p);
  const RowGeometries geometries(configured(needs_of(p), config));
  std::vector<Program> list;
  for (const RowGeometry& g : geometries.list())
    list.push_back(geometry_program(
        "kernel/cuda/device/rowwise/gated_quant.cuh",
        fmt::format("cermet::gated_quant::Task<cermet::gated_quant::Config{{{}, .layout = {{.gate_first = {}, .interleaved = {}}}, .x = {}, "
                    ".weight_scales = {}, .biases = cermet::Along::{}, .bias = {}, .smooths = cermet::Along::{}, .smooth = {}, .out = {}}}>",
                    g.text(), op.gate_first, op.interleaved, device_type(p, 0), device_along(p, op.weight_scale), p.has(op.bias) ? "each" : "none",
                    device_type(p, op.bias), p.has(op.smooth) ? "each" : "none", device_type(p, op.smooth), op.codes.text(p, features_of(p))),
        g));
  return list;
}

Launcher bind(const Problem& p, const Config& config) {
  return [op = GatedQuant(p), programs = RowGeometries(configured(needs_of(p), config))](const LaunchArgs& args) {
    const TensorView &x = args.inputs[0], &q = args.outputs[0];
    const bool accumulators = args.has(op.act_scale);
    const CodeWalk rows(op.codes, args, {{&x}, {accumulators ? &args.inputs[op.act_scale] : &x, accumulators ? 0 : 1}}, 1);
    const RowWalk& walk = rows.walk();
    const auto data = [&](std::size_t operand) -> const void* { return args.has(operand) ? args.inputs[operand].data : nullptr; };
    gated_quant::Params params{};
    params.dims = walk.dims();
    params.rows = static_cast<std::uint32_t>(walk.rows());
    params.length = narrow(q.shape.back(), "row kernel", "columns");
    params.weight_scale = data(op.weight_scale);
    params.bias = data(op.bias);
    params.smooth = data(op.smooth);
    const std::size_t program = programs.choose(walk, rows.aligned(programs.width()), args.queue->target());
    for (std::int64_t launch = 0; launch < walk.launches(); ++launch) {
      params.x = walk.operand(0, launch);
      params.act_scale = walk.operand(1, launch);
      params.out = rows.out(launch);
      args.queue->run(program, programs.items(program, walk.rows()), params);
    }
    const int scales = op.codes.groups ? 1 : 0;
    programs.declare(args, program, walk, std::array{1}, std::array{1, scales, scales});
  };
}

std::vector<Config> configs(const Problem& p) { return row_configs(needs_of(p)); }
double cost(const Region& region, const Config& config, const DeviceLimits& limits) {
  return row_cost(region, configured(needs_of(region.problem()), config), limits);
}

constexpr const char* const summary = "a row in registers from its halves to its quantized values";

}  // namespace

extern const Kernel rowwise_silu_and_mul_quant, rowwise_dequant_swiglu_quant;
const Kernel rowwise_silu_and_mul_quant{.name = "rowwise.silu_and_mul_quant",
                                        .op = OpKind::silu_and_mul_quant,
                                        .summary = summary,
                                        .bind = bind,
                                        .programs = programs,
                                        .configs = configs,
                                        .cost = cost};
const Kernel rowwise_dequant_swiglu_quant{.name = "rowwise.dequant_swiglu_quant",
                                          .op = OpKind::dequant_swiglu_quant,
                                          .summary = summary,
                                          .bind = bind,
                                          .programs = programs,
                                          .configs = configs,
                                          .cost = cost};

}  // namespace cermet::cuda::rowwise_quant_gated_file
