// Host half of group_norm and instance_norm.
#include "kernel/cuda/device/rowwise/group_norm.hpp"

#include "kernel/cuda/rowwise/rowwise.hpp"

namespace cermet::cuda {
namespace {

constexpr int threads = 512;

std::vector<Program> programs(const Problem& p) {
  return {
      {.header = "kernel/cuda/device/rowwise/group_norm.cuh",
       .task = fmt::format("cermet::group_norm::Task<cermet::group_norm::Config{{.threads = {}, .x = {}, .y = {}, .weights = {}, .biases = {}, .weight = {}, "
                           ".bias = {}}}>",
                           threads, device_type(p, 0), device_name(p.outputs[0].dtype), p.has(1), p.has(2), device_type(p, 1), device_type(p, 2)),
       .threads = threads,
       .shared_bytes = row_shared_bytes}};
}

Launcher bind(const Problem& p) {
  const std::int64_t groups = p.op->kind == OpKind::group_norm ? p.attributes.integer("groups") : 0;  // 0: one for each channel
  return [groups, eps = static_cast<float>(p.attributes.number("eps"))](const LaunchArgs& args) {
    const TensorView &x = args.inputs[0], &y = args.outputs[0];
    if (x.elements() == 0) return;
    const int trailing = x.shape.rank() - 1;
    const RowView operands[] = {{&x, trailing}, {&y, trailing}};
    const RowWalk walk(operands);
    const std::int64_t channels = x.shape[1];
    group_norm::Params params{};
    params.dims = walk.dims();
    params.weight = args.has(1) ? args.inputs[1].data : nullptr;
    params.bias = args.has(2) ? args.inputs[2].data : nullptr;
    params.groups = groups == 0 ? channels : groups;
    params.group_channels = channels / params.groups;
    params.positions = x.elements() / (x.shape[0] * channels);
    params.eps = eps;
    params.x = walk.operand(0);
    params.y = walk.operand(1);
    args.queue->run(0, walk.rows() * params.groups, params);
  };
}

constexpr const char* const summary = "a block for each group of each sample, read once for each of its statistics and once to scale it";

}  // namespace

extern const Kernel rowwise_group_norm, rowwise_instance_norm;
const Kernel rowwise_group_norm{.name = "rowwise.group_norm", .op = OpKind::group_norm, .summary = summary, .bind = bind, .programs = programs};
const Kernel rowwise_instance_norm{.name = "rowwise.instance_norm", .op = OpKind::instance_norm, .summary = summary, .bind = bind, .programs = programs};

}  // namespace cermet::cuda
