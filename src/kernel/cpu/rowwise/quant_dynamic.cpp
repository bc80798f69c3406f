#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/rowwise/quant_dynamic.cpp"
#include <hwy/foreach_target.h>

#include "kernel/cpu/rowwise/quantize_row-inl.hpp"
#include "kernel/cpu/rowwise/row_grain.hpp"
#include "kernel/cpu/rowwise/row_kernel.hpp"
#include "kernel/kernel.hpp"
#include "op/operands.hpp"

#ifndef CERMET_DYNAMIC_QUANT_ONCE
#define CERMET_DYNAMIC_QUANT_ONCE
namespace cermet::cpu {
struct DynamicQuant {
  QuantizedFormat format;
  bool per_tensor, index_is_offsets;
};
}  // namespace cermet::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {

/// Row of smooth[E, K] for a row of x: named by the group index, or the group whose offsets hold it.
std::int64_t smooth_row(const LaunchArgs& args, const DynamicQuant& op, std::int64_t row) {
  if (!args.has(op::dynamic_quant::group_index)) return 0;
  const TensorView &smooth = args.inputs[1], &index = args.inputs[op::dynamic_quant::group_index];
  std::int64_t group = 0;
  if (!op.index_is_offsets) group = load_index(index, row);
  else
    while (group < smooth.shape[0] && row >= load_index(index, group + 1)) ++group;
  check_index("dynamic_quant", "group_index", group, smooth.shape[0]);
  return group;
}

/// Tiles of one row of x * smooth.
struct SmoothedRow {
  RowIn x, smooth;
  TileBuffer x_buffer, smooth_buffer, product;

  const float* operator()(std::size_t first, std::size_t n) {
    const float* values = x.read(first, n, x_buffer);
    if (!smooth) return values;
    scale_tile(values, smooth.read(first, n, smooth_buffer), nullptr, false, product.data, n);
    return product.data;
  }
};

void open_row(SmoothedRow& source, const LaunchArgs& args, const DynamicQuant& op, std::int64_t row) {
  source.x = {Rows(args.inputs[0]).row(row), args.inputs[0].dtype};
  source.smooth = {};
  if (args.has(1))
    source.smooth = {args.inputs[1].shape.rank() == 1 ? args.inputs[1].as<std::byte>()
                                                      : Rows(args.inputs[1]).row(smooth_row(args, op, row)),
                     args.inputs[1].dtype};
}

void quantize_rows(const LaunchArgs& args, const DynamicQuant& op) {
  const Rows to(args.outputs[0]);
  args.pool->parallel_for(to.count(), row_grain(to.count(), to.length()), [&](std::int64_t begin, std::int64_t end) {
    SmoothedRow source;
    for (std::int64_t row = begin; row < end; ++row) {
      open_row(source, args, op, row);
      quantize_row(source, static_cast<std::size_t>(to.length()), op.format,
                   quantized_row(args, to, row, 1, op.format));
    }
  });
}

/// One scale for everything: each row's range into the workspace, their union, then the quantized values.
void quantize_tensor(const LaunchArgs& args, const DynamicQuant& op) {
  const Rows to(args.outputs[0]);
  const auto length = static_cast<std::size_t>(to.length());
  auto* ranges = reinterpret_cast<ValueRange*>(args.workspace);
  args.pool->parallel_for(to.count(), row_grain(to.count(), to.length()), [&](std::int64_t begin, std::int64_t end) {
    SmoothedRow source;
    for (std::int64_t row = begin; row < end; ++row) {
      open_row(source, args, op, row);
      ranges[row] = {};
      for_tiles(length, [&](std::size_t first, std::size_t n)
                            HWY_ATTR { widen(ranges[row], source(first, n), n, op.format.asymmetric); });
    }
  });
  ValueRange range;
  for (std::int64_t row = 0; row < to.count(); ++row) range.merge(ranges[row].low, ranges[row].high);
  const QuantizationParams scale = quantization_params(range.low, range.high, op.format);
  *args.outputs[1].as<float>() = scale.scale;
  if (op.format.asymmetric) *args.outputs[2].as<std::int32_t>() = static_cast<std::int32_t>(scale.zero_point);
  args.pool->parallel_for(to.count(), row_grain(to.count(), to.length()), [&](std::int64_t begin, std::int64_t end) {
    SmoothedRow source;
    for (std::int64_t row = begin; row < end; ++row) {
      open_row(source, args, op, row);
      for_tiles(length, [&](std::size_t first, std::size_t n) HWY_ATTR {
        write_scaled(source(first, n), scale, op.format.dtype, to.row(row) + first, n);
      });
    }
  });
}

void dynamic_quant(const LaunchArgs& args, DynamicQuant op) {
  if (args.has(op::dynamic_quant::bound)) op.format.bound = *args.inputs[op::dynamic_quant::bound].as<const float>();
  if (op.per_tensor) quantize_tensor(args, op);
  else quantize_rows(args, op);
}

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cermet::cpu {

HWY_EXPORT(dynamic_quant);

extern const Kernel rowwise_dynamic_quant;
const Kernel rowwise_dynamic_quant = with_row_regions({
    .name = "rowwise.dynamic_quant",
    .op = OpKind::dynamic_quant,
    .summary = "one pass for the range, one to quantize; rows spread over threads",
    .bind = [](const Problem& p) -> Launcher {
      const DynamicQuant op{quantized_format(p.attributes), p.attributes.text("granularity") == "tensor",
                            p.attributes.text("index") == "offsets"};
      return [op](const LaunchArgs& args) { HWY_DYNAMIC_DISPATCH(dynamic_quant)(args, op); };
    },
    .workspace = [](const Problem& p, int) -> std::int64_t {
      if (p.attributes.text("granularity") != "tensor") return 0;
      std::int64_t rows = 1;
      for (int axis = 0; axis + 1 < p.input(0).rank(); ++axis) rows *= p.size(0, axis);
      return rows * static_cast<std::int64_t>(2 * sizeof(float));
    },
});

}  // namespace cermet::cpu
#endif
