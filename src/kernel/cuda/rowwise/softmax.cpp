// Host half of softmax.
#include "kernel/cuda/device/rowwise/softmax.hpp"

#include "kernel/cuda/rowwise/region.hpp"
#include "kernel/cuda/rowwise/rowwise.hpp"

namespace cermet::cuda {
namespace {

RowNeeds needs_of(const Problem& p) {
  return {.columns = constant_columns(p), .width = vector_width({p.input(0).dtype, p.outputs[0].dtype}), .target = p.target};
}

std::vector<Program> programs(const Problem& p) {
  const RowPrograms geometries(needs_of(p));
  std::vector<Program> list;
  for (const RowGeometry& g : geometries.list())
    list.push_back(row_program("kernel/cuda/device/rowwise/softmax.cuh",
                               fmt::format("cermet::softmax::Task<cermet::softmax::Config{{{}, .x = {}, .y = {}, .logarithm = {}}}>", g.text(),
                                           device_type(p, 0), device_name(p.outputs[0].dtype), p.attributes.flag("log")),
                               g));
  return list;
}

Launcher bind(const Problem& p) {
  return [programs = RowPrograms(needs_of(p))](const LaunchArgs& args) {
    const TensorView &x = args.inputs[0], &y = args.outputs[0];
    const RowView operands[] = {{&x}, {&y}};
    const RowWalk walk(operands);
    if (x.shape.back() == 0) return;
    softmax::Params params{};
    params.dims = walk.dims();
    params.rows = static_cast<std::uint32_t>(walk.rows());
    params.length = static_cast<std::int32_t>(x.shape.back());
    const bool aligned = walk.aligned(0, programs.width()) && walk.aligned(1, programs.width());
    const std::size_t program = programs.choose(walk, aligned, args.queue->target());
    for (std::int64_t launch = 0; launch < walk.launches(); ++launch) {
      params.x = walk.operand(0, launch);
      params.y = walk.operand(1, launch);
      args.queue->run(program, programs.items(program, walk.rows()), params);
    }
  };
}

}  // namespace

extern const Kernel rowwise_softmax;
const Kernel rowwise_softmax = with_row_regions(
    {.name = "rowwise.softmax", .op = OpKind::softmax, .summary = "a row in registers: one pass over memory", .bind = bind, .programs = programs});

}  // namespace cermet::cuda
