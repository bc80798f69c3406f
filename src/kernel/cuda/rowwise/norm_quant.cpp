// Host half of rms_norm_quant and add_rms_norm_quant.
#include "kernel/cuda/device/rowwise/norm_quant.hpp"

#include "kernel/cuda/narrow.hpp"
#include "kernel/cuda/rowwise/codes.hpp"
#include "kernel/cuda/rowwise/row_configs.hpp"
#include "op/norm_quant.hpp"

namespace cermet::cuda::rowwise_norm_quant_file {
namespace {

struct NormQuant {
  bool add;
  NormQuantOperands operands;
  RowCodes codes;

  explicit NormQuant(const Problem& p) : add(p.op->kind == OpKind::add_rms_norm_quant), operands(add ? 2 : 1) {
    codes = {.format = code_format(p.attributes),
             .groups = p.attributes.text("granularity") == "group",
             .scale = operands.scale,
             .offset = operands.offset,
             .divide = p.attributes.text("mode") == "div"};
  }
  /// Both statistics of a row take one reduction.
  bool at_once(const Problem& p) const { return !codes.is_static(p) && codes.format.group == 0 && !codes.format.asymmetric; }
};

RowNeeds needs_of(const Problem& p) {
  const NormQuant op(p);
  const std::int64_t columns = constant_columns(p);
  RowNeeds needs{.columns = columns,
                 .width = vector_width({p.input(0).dtype, p.input(op.add ? 1 : 0).dtype}),
                 .group = op.codes.group(p, columns),
                 .keep = true,
                 .few_cluster = op.at_once(p) ? few_cluster(p.target) : 1,
                 .target = p.target};
  needs.short_rows.registers = needs.long_rows.registers = 96;
  if (needs.width == 8 && !p.has(op.operands.smooth)) {
    needs.short_rows = op.at_once(p) ? RowTuning{.elements = 32, .registers = op.add ? 80 : 72} : RowTuning{.elements = 64, .registers = 160};
    needs.long_rows = op.add || !op.at_once(p) ? RowTuning{.elements = 32, .registers = 72} : RowTuning{.elements = 56, .registers = 80};
  }
  return needs;
}

std::vector<Program> programs(const Problem& p, const Config& config) {
  const NormQuant op(p);
  const RowGeometries geometries(configured(needs_of(p), config));
  std::vector<Program> list;
  for (const RowGeometry& g : geometries.list())
    list.push_back(geometry_program(
        "kernel/cuda/device/rowwise/norm_quant.cuh",
        fmt::format("cermet::norm_quant::Task<cermet::norm_quant::Config{{{}, .add = {}, .weight_offset = {}, .x = {}, .residual = {}, .weights = "
                    "cermet::Along::{}, .smooths = cermet::Along::{}, .weight = {}, .smooth = {}, .out = {}}}>",
                    g.text(), op.add, p.attributes.number("weight_offset") != 0, device_type(p, 0), device_type(p, op.add ? 1 : 0),
                    p.has(op.operands.weight) ? "each" : "none", p.has(op.operands.smooth) ? "each" : "none", device_type(p, op.operands.weight),
                    device_type(p, op.operands.smooth), op.codes.text(p, constant_columns(p))),
        g));
  return list;
}

Launcher bind(const Problem& p, const Config& config) {
  return [op = NormQuant(p), programs = RowGeometries(configured(needs_of(p), config)), eps = static_cast<float>(p.attributes.number("eps")),
          offset = static_cast<float>(p.attributes.number("weight_offset"))](const LaunchArgs& args) {
    const TensorView& x = args.inputs[0];
    const CodeWalk rows(op.codes, args, {{&x}, {&args.inputs[op.add ? 1 : 0]}, {op.add ? &args.outputs[1] : &x}}, op.add ? 2 : 1);
    const RowWalk& walk = rows.walk();
    norm_quant::Params params{};
    params.dims = walk.dims();
    params.rows = static_cast<std::uint32_t>(walk.rows());
    params.length = narrow(x.shape.back(), "row kernel", "columns");
    params.weight = args.has(op.operands.weight) ? args.inputs[op.operands.weight].data : nullptr;
    params.smooth = args.has(op.operands.smooth) ? args.inputs[op.operands.smooth].data : nullptr;
    params.eps = eps;
    params.weight_offset = offset;
    const std::size_t program = programs.choose(walk, rows.aligned(programs.width()), args.queue->target());
    for (std::int64_t launch = 0; launch < walk.launches(); ++launch) {
      params.x = walk.operand(0, launch);
      params.residual = walk.operand(1, launch);
      params.sum = walk.operand(2, launch);
      params.out = rows.out(launch);
      args.queue->run(program, programs.items(program, walk.rows()), params);
    }
    const int scales = op.codes.groups ? 1 : 0;
    if (op.add) programs.declare(args, program, walk, std::array{1, 1}, std::array{1, 1, scales, scales});
    else programs.declare(args, program, walk, std::array{1}, std::array{1, scales, scales});
  };
}

std::vector<Config> configs(const Problem& p) { return row_configs(needs_of(p)); }
double cost(const Region& region, const Config& config, const DeviceLimits& limits) {
  return row_cost(region, configured(needs_of(region.problem()), config), limits);
}

constexpr const char* const summary = "a row in registers from its first load to its quantized values";

}  // namespace

extern const Kernel rowwise_rms_norm_quant, rowwise_add_rms_norm_quant;
const Kernel rowwise_rms_norm_quant{
    .name = "rowwise.rms_norm_quant", .op = OpKind::rms_norm_quant, .summary = summary, .bind = bind, .programs = programs, .configs = configs, .cost = cost};
const Kernel rowwise_add_rms_norm_quant{.name = "rowwise.add_rms_norm_quant",
                                        .op = OpKind::add_rms_norm_quant,
                                        .summary = summary,
                                        .bind = bind,
                                        .programs = programs,
                                        .configs = configs,
                                        .cost = cost};

}  // namespace cermet::cuda::rowwise_norm_quant_file
