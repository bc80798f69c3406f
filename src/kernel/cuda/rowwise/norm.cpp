// Host half of rms_norm, add_rms_norm and layer_norm.
#include "kernel/cuda/device/rowwise/norm.hpp"

#include "kernel/cuda/rowwise/region.hpp"
#include "kernel/cuda/rowwise/rowwise.hpp"
#include "op/norm.hpp"

namespace cermet::cuda {
namespace {

/// Where the operands of the three operators are, and what is computed.
struct Norm {
  bool layer = false, add = false;
  std::size_t weight, bias;

  explicit Norm(const Problem& p)
      : layer(p.op->kind == OpKind::layer_norm), add(p.op->kind == OpKind::add_rms_norm), weight(add ? 2 : 1), bias(layer ? 2 : 64) {}
  int trailing(const Problem& p) const { return p.has(weight) ? p.input(weight).rank() : p.has(bias) ? p.input(bias).rank() : 1; }
};

RowNeeds needs_of(const Problem& p) {
  const Norm op(p);
  RowNeeds needs{.columns = constant_columns(p, op.trailing(p)),
                 .width = vector_width({p.input(0).dtype, p.input(op.add ? 1 : 0).dtype, p.outputs[0].dtype}),
                 .few_cluster = few_cluster(p.target),
                 .target = p.target};
  needs.short_rows.registers = needs.long_rows.registers = needs.width == 8 ? 72 : 96;
  if (!op.add && size_of(p.input(0).dtype) == 2) {  // held as they are, in half the registers
    const bool narrow_weight = !p.has(op.weight) || size_of(p.input(op.weight).dtype) == 2;
    needs.short_rows = {.elements = 16, .registers = op.layer || !narrow_weight ? 56 : 48};
    needs.long_rows = {.elements = 56, .registers = op.layer ? 128 : 80};
  }
  return needs;
}

/// A weight vector has as many elements as a row, even where that is one.
const char* along(const Problem& p, std::size_t operand) { return p.has(operand) ? "cermet::Along::each" : "cermet::Along::none"; }

std::vector<Program> programs(const Problem& p) {
  const Norm op(p);
  const bool round_sum = op.add && p.attributes.flag("round_sum");
  const RowPrograms geometries(needs_of(p));
  std::vector<Program> list;
  for (const RowGeometry& g : geometries.list())
    list.push_back(row_program("kernel/cuda/device/rowwise/norm.cuh",
                               fmt::format("cermet::norm::Task<cermet::norm::Config{{{}, .kind = cermet::norm::Kind::{}, .add = {}, .round_sum = {}, "
                                           ".weight_offset = {}, .x = {}, .residual = {}, .y = {}, .weights = {}, .biases = {}, .weight = {}, .bias = {}}}>",
                                           g.text(), op.layer ? "layer" : "rms", op.add, round_sum, !op.layer && p.attributes.number("weight_offset") != 0,
                                           device_type(p, 0), device_type(p, op.add ? 1 : 0), device_name(p.outputs[0].dtype), along(p, op.weight),
                                           along(p, op.bias), device_type(p, op.weight), device_type(p, op.bias)),
                               g));
  return list;
}

Launcher bind(const Problem& p) {
  const Norm op(p);
  const int trailing = op.trailing(p);
  return [op, trailing, programs = RowPrograms(needs_of(p)), eps = static_cast<float>(p.attributes.number("eps")),
          offset = op.layer ? 0.0f : static_cast<float>(p.attributes.number("weight_offset"))](const LaunchArgs& args) {
    const TensorView &x = args.inputs[0], &y = args.outputs[0];
    const RowView operands[] = {{&x, trailing}, {&y, trailing}, {op.add ? &args.inputs[1] : &x, trailing}, {op.add ? &args.outputs[1] : &y, trailing}};
    const RowWalk walk(operands);
    norm::Params params{};
    params.length = 1;
    for (int axis = x.shape.rank() - trailing; axis < x.shape.rank(); ++axis) params.length *= static_cast<std::int32_t>(x.shape[axis]);
    if (params.length == 0) return;
    bool aligned = true;
    for (std::size_t i = 0; i < std::size(operands); ++i) aligned = aligned && walk.aligned(i, programs.width());
    for (const std::size_t i : {op.weight, op.bias}) aligned = aligned && (!args.has(i) || is_aligned(args.inputs[i], programs.width()));
    const std::size_t program = programs.choose(walk, aligned, args.queue->target());
    params.weight = args.has(op.weight) ? args.inputs[op.weight].data : nullptr;
    params.bias = args.has(op.bias) ? args.inputs[op.bias].data : nullptr;
    params.dims = walk.dims();
    params.rows = static_cast<std::uint32_t>(walk.rows());
    params.eps = eps;
    params.weight_offset = offset;
    for (std::int64_t launch = 0; launch < walk.launches(); ++launch) {
      params.x = walk.operand(0, launch);
      params.y = walk.operand(1, launch);
      params.residual = walk.operand(2, launch);
      params.sum = walk.operand(3, launch);
      args.queue->run(program, programs.items(program, walk.rows()), params);
    }
  };
}

constexpr const char* const summary = "a row in the registers of a block, or of a part of a warp: one pass over memory";

}  // namespace

extern const Kernel rowwise_rms_norm, rowwise_add_rms_norm, rowwise_layer_norm;
const Kernel rowwise_rms_norm = with_row_regions({.name = "rowwise.rms_norm", .op = OpKind::rms_norm, .summary = summary, .bind = bind, .programs = programs});
const Kernel rowwise_add_rms_norm =
    with_row_regions({.name = "rowwise.add_rms_norm", .op = OpKind::add_rms_norm, .summary = summary, .bind = bind, .programs = programs});
const Kernel rowwise_layer_norm =
    with_row_regions({.name = "rowwise.layer_norm", .op = OpKind::layer_norm, .summary = summary, .bind = bind, .programs = programs});

}  // namespace cermet::cuda
