// Host half of dequant_swiglu_quant.
#include "kernel/cuda/device/rowwise/gated_quant.hpp"

#include "kernel/cuda/rowwise_codes.hpp"

namespace cermet::cuda {
namespace {

constexpr std::size_t weight_scale_operand = 1, act_scale_operand = 2, bias_operand = 3, smooth_operand = 4, offset_operand = 5;

struct GatedQuant {
  RowCodes codes;
  bool gate_first;

  explicit GatedQuant(const Problem& p) : codes{.format = code_format(p.attributes)}, gate_first(p.attributes.text("activate") == "left") {
    if (p.attributes.text("quantization") != "static") return;
    codes.scale = smooth_operand;
    codes.offset = offset_operand;
    codes.divide = false;
  }
};

std::int64_t features_of(const Problem& p) { return constant_columns(p) / 2; }

RowNeeds needs_of(const Problem& p) { return {.columns = features_of(p), .width = vector_width({p.input(0).dtype})}; }

std::vector<Program> programs(const Problem& p) {
  const GatedQuant op(p);
  const RowPrograms geometries(needs_of(p));
  std::vector<Program> list;
  for (const RowGeometry& g : geometries.list())
    list.push_back(
        {.header = "kernel/cuda/device/rowwise/gated_quant.cuh",
         .task = fmt::format("cermet::gated_quant::Task<cermet::gated_quant::Config{{{}, .layout = {{.gate_first = {}}}, .x = {}, .weight_scales = {}, "
                             ".biases = cermet::Along::{}, .bias = {}, .smooths = cermet::Along::{}, {}}}>",
                             g.text(), op.gate_first, device_type(p, 0), device_along(p, weight_scale_operand), p.has(bias_operand) ? "each" : "none",
                             device_type(p, bias_operand), p.has(smooth_operand) && !op.codes.is_static(p) ? "each" : "none", op.codes.text(p, features_of(p))),
         .threads = g.threads,
         .shared_bytes = 256});
  return list;
}

Launcher bind(const Problem& p) {
  return [op = GatedQuant(p), programs = RowPrograms(needs_of(p))](const LaunchArgs& args) {
    const TensorView &x = args.inputs[0], &q = args.outputs[0];
    const CodeWalk rows(op.codes, args, {{&x}, {&args.inputs[act_scale_operand], 0}}, 1);
    const RowWalk& walk = rows.walk();
    gated_quant::Params params{};
    params.dims = walk.dims();
    params.rows = static_cast<std::uint32_t>(walk.rows());
    params.length = static_cast<std::int32_t>(q.shape.back());
    params.weight_scale = args.inputs[weight_scale_operand].data;
    params.bias = args.has(bias_operand) ? args.inputs[bias_operand].data : nullptr;
    params.smooth = args.has(smooth_operand) ? args.inputs[smooth_operand].data : nullptr;
    const std::size_t program = programs.choose(walk.rows(), rows.aligned(programs.width()), args.queue->target().multiprocessors);
    for (std::int64_t launch = 0; launch < walk.launches(); ++launch) {
      params.x = walk.operand(0, launch);
      params.act_scale = walk.operand(1, launch);
      params.out = rows.out(launch);
      args.queue->run(program, programs.items(program, walk.rows()), params);
    }
  };
}

}  // namespace

extern const Kernel rowwise_dequant_swiglu_quant;
const Kernel rowwise_dequant_swiglu_quant{.name = "rowwise.dequant_swiglu_quant",
                                          .op = OpKind::dequant_swiglu_quant,
                                          .summary = "a row in registers from its accumulators to its codes",
                                          .bind = bind,
                                          .programs = programs};

}  // namespace cermet::cuda
