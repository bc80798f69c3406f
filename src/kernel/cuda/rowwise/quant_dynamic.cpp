// Host half of dynamic_quant.
#include "kernel/cuda/declare.hpp"
#include "kernel/cuda/device/rowwise/dynamic_quant.hpp"

#include "kernel/cuda/narrow.hpp"
#include "kernel/cuda/rowwise/row_configs.hpp"
#include "kernel/cuda/rowwise/row_region_kernel.hpp"
#include "op/operands.hpp"

namespace cermet::cuda::rowwise_quant_dynamic_file {
namespace {

constexpr std::size_t group_index = op::dynamic_quant::group_index;

/// How the rows of either kernel lie over threads.
RowSpec rows_of(const Problem& p) {
  RowSpec spec{.width = vector_width({p.input(0).dtype})};
  if (size_of(p.input(0).dtype) == 2 && !p.has(op::dynamic_quant::smooth)) {  // held as they are, in half the registers
    spec.short_rows = {.elements = 32, .registers = 64};
    spec.long_rows = {.elements = 56, .registers = 64};
  }
  return spec;
}

RowSpec spec_of_row_program(const Problem& p) {
  RowSpec spec = rows_of(p);
  if (quantized_format(p.attributes).group == 0) spec.few_cluster = few_cluster(p.target);
  return spec;
}

struct DynamicQuant {
  RowQuantization quantized;
  bool per_tensor, offsets;

  explicit DynamicQuant(const Problem& p)
      : quantized{.format = quantized_format(p.attributes), .bounded = p.has(op::dynamic_quant::bound)},
        per_tensor(p.attributes.text("granularity") == "tensor"),
        offsets(p.attributes.text("index") == "offsets") {}
};

/// What rows of their own programs do not know.
Decline declines_general(const Problem& p) {
  if (p.attributes.text("granularity") == "tensor" || p.has(group_index) || p.has(op::dynamic_quant::bound))
    return std::nullopt;
  return "no scale for everything, no bound and no smoothing factors by an index";
}

RowSpec spec_of(const Problem& p) {
  const DynamicQuant op(p);
  RowSpec spec = rows_of(p);
  spec.columns = constant_columns(p);
  spec.group = op.quantized.group(spec.columns);
  spec.target = p.target;
  if (!op.quantized.groups() && !op.per_tensor) spec.few_cluster = few_cluster(p.target);
  return spec;
}

/// All programs of one pass, then those of the next.
std::vector<Program> programs(const Problem& p, const Config& config) {
  const DynamicQuant op(p);
  const RowVariants variants(configured(spec_of(p), config));
  std::vector<Program> list;
  using dynamic_quant::Index, dynamic_quant::Pass;
  const std::vector<Pass> passes = op.per_tensor ? std::vector{Pass::range, Pass::quantize} : std::vector{Pass::only};
  for (const Pass pass : passes)
    for (const RowVariant& variant : variants.list()) {
      const dynamic_quant::Config device{.layout = variant.layout,
                                         .x = p.input(0).dtype,
                                         .smooths = p.has(op::dynamic_quant::smooth),
                                         .smooth = type_or_f32(p, op::dynamic_quant::smooth),
                                         .indexed = !p.has(group_index) ? Index::none
                                                    : op.offsets        ? Index::offsets
                                                                        : Index::ids,
                                         .index = p.has(group_index) ? p.input(group_index).dtype : DType::i32,
                                         .pass = pass};
      list.push_back(variant_program(
          "kernel/cuda/device/rowwise/dynamic_quant.cuh",
          fmt::format("cermet::dynamic_quant::Task<cermet::dynamic_quant::Config{}, cermet::Quantization{}>",
                      config_text(device), op.quantized.text(constant_columns(p))),
          variant));
    }
  return list;
}

Launcher bind(const Problem& p, const Config& config) {
  return [op = DynamicQuant(p), programs = RowVariants(configured(spec_of(p), config))](const LaunchArgs& args) {
    const TensorView& x = args.inputs[0];
    const TensorView* ids = args.has(group_index) && !op.offsets ? &args.inputs[group_index] : nullptr;
    std::array<RowView, 5> views{{{&x}, {ids ? ids : &x, ids ? 0 : 1}, {&args.outputs[0]}}};
    std::size_t count = 3;
    const int scales = op.quantized.groups() ? 1 : 0;
    for (std::size_t i = 1; i < args.outputs.size() && !op.per_tensor; ++i) views[count++] = {&args.outputs[i], scales};
    const StridedRows strided(std::span(views.data(), count));
    dynamic_quant::Params params{};
    params.dims = strided.dims();
    params.rows = static_cast<std::uint32_t>(strided.rows());
    params.length = narrow(x.shape.back(), "row kernel", "columns");
    if (args.has(op::dynamic_quant::smooth)) {
      params.smooth = args.inputs[op::dynamic_quant::smooth].data;
      params.smooth_step = args.inputs[op::dynamic_quant::smooth].strides[0];
      params.experts = args.inputs[op::dynamic_quant::smooth].shape[0];
    }
    if (args.has(group_index)) params.offsets = args.inputs[group_index].data;
    const int width = programs.width();
    bool aligned = strided.aligned(0, width) && strided.aligned(2, width);
    if (args.has(op::dynamic_quant::smooth))
      aligned = aligned && is_aligned(args.inputs[op::dynamic_quant::smooth], width);
    if (args.has(group_index)) aligned = aligned && params.smooth_step % width == 0;
    const std::size_t program = programs.choose(strided, aligned, args.queue->target());
    const ByteRange smooth =
        args.has(op::dynamic_quant::smooth) ? byte_range(args.inputs[op::dynamic_quant::smooth]) : ByteRange{};
    const ByteRange ids_or_offsets = args.has(group_index) ? byte_range(args.inputs[group_index]) : ByteRange{};
    params.out.bound = op.quantized.bounded ? args.inputs[op::dynamic_quant::bound].as<const float>() : nullptr;
    const ByteRange range{args.workspace, 2 * sizeof(std::uint32_t)};  // of everything, in one pass; read by the next
    const auto launch_all = [&](std::size_t pass) {
      for (std::int64_t launch = 0; launch < strided.launches(); ++launch) {
        params.x = strided.operand(0, launch);
        params.index = strided.operand(1, launch);
        params.first_row = launch * strided.rows();
        params.out.values = strided.operand(2, launch);
        if (count > 3) params.out.scale = strided.operand(3, launch);
        if (count > 4) params.out.zero_point = strided.operand(4, launch);
        if (op.per_tensor) {
          params.out.scale = {args.outputs[1].data, {0, 0, 0}};
          params.out.zero_point = {args.outputs.size() > 2 ? args.outputs[2].data : nullptr, {0, 0, 0}};
        }
        args.queue->run(pass * programs.list().size() + program, programs.items(program, strided.rows()), params);
        if (!op.per_tensor) continue;
        if (pass == 0) args.queue->declare({byte_range(x), smooth, ids_or_offsets, range}, {range});
        else declare_operands(args, {.also_reads = range});
      }
    };
    if (op.per_tensor) {
      params.range = reinterpret_cast<std::uint32_t*>(args.workspace);
      args.queue->fill(params.range, 0, range.bytes);
      if (x.elements() == 0) {  // no row writes the scale
        args.queue->fill(args.outputs[1].data, 0, sizeof(float));
        if (args.outputs.size() > 2) args.queue->fill(args.outputs[2].data, 0, sizeof(std::int32_t));
        return;
      }
      launch_all(0);
    }
    launch_all(op.per_tensor ? 1 : 0);
  };
}

std::vector<Config> configs(const Problem& p) { return row_configs(spec_of(p)); }
ConfigSpace space(const Problem& p) { return row_space(spec_of(p)); }
double cost(const Region& region, const Config& config, const DeviceLimits& limits) {
  return row_cost(region, configured(spec_of(region.problem()), config), limits);
}

}  // namespace

extern const Kernel rowwise_dynamic_quant, rowwise_dynamic_quant_general;
const Kernel rowwise_dynamic_quant =
    row_kernel("rowwise.dynamic_quant", OpKind::dynamic_quant,
               "a row in registers between its range and its quantized values", spec_of_row_program);
const Kernel rowwise_dynamic_quant_general{
    .name = "rowwise.dynamic_quant.general",
    .op = OpKind::dynamic_quant,
    .summary = "smoothing factors by an index, a bound of the magnitudes, or one scale for everything, in two passes",
    .declines = [](const Region& region) { return declines_general(region.problem()); },
    .bind = bind,
    .workspace = [](const Problem& p, int) -> std::int64_t {
      return p.attributes.text("granularity") == "tensor" ? 64 : 0;
    },
    .programs = programs,
    .configs = configs,
    .space = space,
    .cost = cost};

}  // namespace cermet::cuda::rowwise_quant_dynamic_file
