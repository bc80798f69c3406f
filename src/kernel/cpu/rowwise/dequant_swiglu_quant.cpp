#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/rowwise/dequant_swiglu_quant.cpp"
#include <hwy/foreach_target.h>

#include "kernel/cpu/rowwise/quantize_row-inl.hpp"
#include "kernel/kernel.hpp"

#ifndef CERMET_DEQUANT_SWIGLU_QUANT_ONCE
#define CERMET_DEQUANT_SWIGLU_QUANT_ONCE
namespace cermet::cpu {
struct DequantSwigluQuant {
  CodeFormat format;
  bool activate_left, fixed_scale;
};
}  // namespace cermet::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {

/// Tiles of one row of silu(gate) * up * smooth, from int32 accumulators.
struct SwigluRow {
  const std::int32_t *x = nullptr, *integer_bias = nullptr;
  AlongRow weight_scale, smooth;
  RowIn bias;
  float act_scale = 1;
  std::size_t gate_first = 0, up_first = 0;
  TileBuffer scale_buffer, bias_buffer, smooth_buffer, gate, up;

  /// x * weight_scale * act_scale + bias of elements [first, first + n) of the row of 2F.
  void dequantize(std::size_t first, std::size_t n, float* to) {
    for (std::size_t i = 0; i < n; ++i) {
      const auto sum = static_cast<std::uint32_t>(x[first + i]) + (integer_bias ? static_cast<std::uint32_t>(integer_bias[first + i]) : 0u);  // wraps
      to[i] = static_cast<float>(static_cast<std::int32_t>(sum));
    }
    const float* scale = weight_scale.read(first, n, scale_buffer);
    const float* added = bias ? bias.read(first, n, bias_buffer) : nullptr;
    const auto act = hn::Set(FloatTag(), act_scale);
    for_vectors(n, [&](std::size_t i, std::size_t count) HWY_ATTR {
      auto v = hn::Mul(load_n(to + i, count), hn::Mul(load_n(scale + i, count), act));
      if (added) v = hn::Add(v, load_n(added + i, count));
      store_n(v, to + i, count);
    });
  }

  const float* operator()(std::size_t first, std::size_t n) {
    dequantize(gate_first + first, n, gate.data);
    dequantize(up_first + first, n, up.data);
    const float* factors = smooth ? smooth.read(first, n, smooth_buffer) : nullptr;
    for_vectors(n, [&](std::size_t i, std::size_t count) HWY_ATTR {
      Real v = silu(load_n(gate.data + i, count)) * Real(load_n(up.data + i, count));
      if (factors) v = v * Real(load_n(factors + i, count));
      store_n(v.v, gate.data + i, count);
    });
    return gate.data;
  }
};

void swiglu_rows(const LaunchArgs& args, const DequantSwigluQuant& op, std::int64_t begin, std::int64_t end) {
  const TensorView &x = args.inputs[0], &act_scale = args.inputs[2], &q = args.outputs[0];
  const Rows from(x), to(q);
  const auto features = static_cast<std::size_t>(to.length());
  SwigluRow row;
  row.weight_scale = scalar_or_channel(args, 1);
  row.smooth = scalar_or_channel(args, 4);
  row.gate_first = op.activate_left ? 0 : features;
  row.up_first = op.activate_left ? features : 0;
  if (args.has(3) && args.inputs[3].dtype == DType::i32) row.integer_bias = args.inputs[3].as<const std::int32_t>();
  else if (args.has(3)) row.bias = {args.inputs[3].as<std::byte>(), args.inputs[3].dtype};
  const AlongRow offset = scalar_or_channel(args, 5);
  TileBuffer offset_buffer, shifted;
  for (std::int64_t r = begin; r < end; ++r) {
    row.x = reinterpret_cast<const std::int32_t*>(from.row(r));
    row.act_scale = act_scale.as<const float>()[element_offset(act_scale, r)];
    if (!op.fixed_scale) {
      quantize_row(row, features, op.format, quantized_row(args, to, r, 1, op.format));
      continue;
    }
    for_tiles(features, [&](std::size_t first, std::size_t n) HWY_ATTR {
      const float* values = row(first, n);
      if (offset) {
        const float* added = offset.read(first, n, offset_buffer);
        for (std::size_t i = 0; i < n; ++i) shifted.data[i] = values[i] + added[i];
        values = shifted.data;
      }
      write_codes(values, q.dtype, to.row(r) + first, n);
    });
  }
}

void dequant_swiglu_quant(const LaunchArgs& args, const DequantSwigluQuant& op) {
  args.pool->parallel_for(Rows(args.outputs[0]).count(), 1, [&](std::int64_t begin, std::int64_t end) { swiglu_rows(args, op, begin, end); });
}

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cermet::cpu {

HWY_EXPORT(dequant_swiglu_quant);

extern const Kernel rowwise_dequant_swiglu_quant{
    .name = "rowwise.dequant_swiglu_quant",
    .op = OpKind::dequant_swiglu_quant,
    .summary = "static: one pass; dynamic: one for the range, one to quantize; rows spread over threads",
    .bind = [](const Problem& p) -> Launcher {
      const DequantSwigluQuant op{code_format(p.attributes), p.attributes.text("activate") == "left", p.attributes.text("quantization") == "static"};
      return [op](const LaunchArgs& args) { HWY_DYNAMIC_DISPATCH(dequant_swiglu_quant)(args, op); };
    },
};

}  // namespace cermet::cpu
#endif
