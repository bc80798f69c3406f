// Host half of resize.
#include "kernel/cuda/device/image/resize.hpp"

#include "base/checked.hpp"
#include "format/element.hpp"
#include "kernel/cuda/config_text.hpp"
#include "kernel/cuda/movement/axes.hpp"
#include "kernel/cuda/task.hpp"
#include "kernel/kernel.hpp"
#include "op/resize.hpp"

namespace cermet::cuda::image_resize_file {
namespace {

ResizePlan plan_of(const Problem& p) {
  return ResizeAttributes(p.attributes, p.input(0).rank())
      .plan(bind(p.input(0).dims, p.maximum), bind(p.outputs[0].dims, p.maximum));
}

std::int64_t table_bytes(const resize::Axis& axis) {
  return round_up(axis.out * (axis.taps * 8 + 1), std::int64_t{64});
}

/// Elements that a thread may take: the last axis is copied, and sizes, strides and addresses allow it.
std::int64_t run_of(const AxesBuilder<2>& builder, const ResizePlan& plan, const TensorView& x, const TensorView& y) {
  const auto bytes = byte_size(x.dtype), wide = 16 / bytes;
  if (plan.rank == 0 || plan.resized[static_cast<std::size_t>(plan.rank - 1)]) return 1;
  const bool aligned =
      reinterpret_cast<std::uintptr_t>(x.data) % 16 == 0 && reinterpret_cast<std::uintptr_t>(y.data) % 16 == 0;
  return aligned && builder.run_length({true, true}, wide) == wide ? wide : 1;
}

void launch(const LaunchArgs& args, const ResizeAttributes& attributes) {
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  if (y.elements() == 0) return;
  const ResizePlan plan = attributes.plan(x.shape, y.shape);
  AxesBuilder<2> builder;
  for (int a = 0; a < plan.rank; ++a) {
    require(x.shape[a] > 0, "resize: operand 0 (x): expected at least 1 element along axis {}, found {}", a,
            x.shape.to_string());
    builder.append_alone(y.shape[a], {x.strides[a], y.strides[a]});
  }
  const std::int64_t run = run_of(builder, plan, x, y);
  resize::Params params{.x = x.data,
                        .y = y.data,
                        .axes = builder.make(run, {true, true}),
                        .slot = {},
                        .tables = {},
                        .taps = {1, 1, 1, 1},
                        .stride = {},
                        .crops = plan.rule.coordinates == resize::Coordinates::tf_crop_and_resize,
                        .extrapolation = static_cast<float>(plan.extrapolation),
                        .filler = {}};
  format::store_element(params.filler, y.dtype, 0, plan.extrapolation);
  std::byte* memory = args.workspace;
  int slots = 0;
  for (auto& slot : params.slot) slot = -1;
  for (int a = 0; a < plan.rank; ++a) {
    const auto i = static_cast<std::size_t>(a);
    if (!plan.resized[i]) continue;
    const resize::Axis& axis = plan.axes[i];
    const std::int64_t entries = axis.out * axis.taps;
    const resize::Table table{reinterpret_cast<std::int32_t*>(memory), reinterpret_cast<float*>(memory + entries * 4),
                              reinterpret_cast<std::uint8_t*>(memory + entries * 8)};
    args.queue->run(0, div_up(axis.out, std::int64_t{resize::threads}), resize::TableParams{plan.rule, axis, table});
    args.queue->declare({}, {ByteRange{memory, table_bytes(axis)}});
    memory += table_bytes(axis);
    params.slot[a] = slots;
    params.tables[slots] = table;
    params.taps[slots] = axis.taps;
    params.stride[slots++] = params.axes.stride[0][a];
  }
  args.queue->run(run > 1 ? 2 : 1, div_up(params.axes.count, std::int64_t{resize::threads}), params);
  args.queue->declare({byte_range(x), ByteRange{args.workspace, memory - args.workspace}}, {byte_range(y)});
}

Decline declines(const Problem& p) {
  const ResizePlan plan = plan_of(p);
  int resized = 0;
  for (std::size_t a = 0; a < static_cast<std::size_t>(plan.rank); ++a) {
    resized += plan.resized[a];
    if (plan.axes[a].in >= std::int64_t{1} << 31) return "an axis of 2^31 or more elements";
  }
  if (resized > resize::most_resized) return "more than 4 axes change";
  return std::nullopt;
}

DType word_of(DType type) {
  switch (size_of(type)) {
    case 1: return DType::u8;
    case 2: return DType::u16;
    case 4: return DType::u32;
    default: return DType::u64;
  }
}

std::vector<Program> programs(const Problem& p) {
  const bool nearest = p.attributes.text("mode") == "nearest";
  const DType type = nearest ? word_of(p.input(0).dtype) : p.input(0).dtype;
  const std::string header = "kernel/cuda/device/image/resize.cuh";
  const auto program = [&](int run) -> Program {
    const resize::Config config{.type = type, .nearest = nearest, .run = run};
    return {.header = header,
            .task = fmt::format("cermet::resize::Task<cermet::resize::Config{}>", config_text(config)),
            .threads = resize::threads};
  };
  return {{.header = header, .task = "cermet::resize::TableTask", .threads = resize::threads},
          program(1),
          program(16 / static_cast<int>(size_of(type)))};
}

}  // namespace

extern const Kernel resize_tables;
const Kernel resize_tables{.name = "resize.tables",
                           .op = OpKind::resize,
                           .summary = "a table for each axis, then a thread for each result or 16 bytes of them",
                           .declines = declines,
                           .bind = [](const Problem& p) -> Launcher {
                             return [attributes = ResizeAttributes(p.attributes, p.input(0).rank())](
                                        const LaunchArgs& args) { launch(args, attributes); };
                           },
                           .workspace = [](const Problem& p, int) -> std::int64_t {
                             std::int64_t bytes = 0;
                             const ResizePlan plan = plan_of(p);
                             for (std::size_t a = 0; a < static_cast<std::size_t>(plan.rank); ++a)
                               if (plan.resized[a]) bytes += table_bytes(plan.axes[a]);
                             return bytes;
                           },
                           .programs = programs};

}  // namespace cermet::cuda::image_resize_file
