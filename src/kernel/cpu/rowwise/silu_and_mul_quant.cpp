#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/rowwise/silu_and_mul_quant.cpp"
#include <hwy/foreach_target.h>

#include "kernel/cpu/pointwise/gated-inl.hpp"
#include "kernel/cpu/rowwise/quantize_row-inl.hpp"
#include "kernel/kernel.hpp"

#ifndef CERMET_SILU_AND_MUL_QUANT_ONCE
#define CERMET_SILU_AND_MUL_QUANT_ONCE
namespace cermet::cpu {
struct SiluAndMulQuant {
  CodeFormat format;
  bool gate_first, interleaved, divide;
};
inline constexpr std::size_t smooth_operand = 1, scale_operand = 2, offset_operand = 3;
}  // namespace cermet::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {

/// Tiles of one row of silu(gate) * up * smooth, recomputed at every request.
struct GatedRow {
  RowIn x, smooth;
  std::size_t features = 0;
  bool gate_first = true, interleaved = false;
  GatedTile tile;
  TileBuffer smooth_buffer, result;

  const float* operator()(std::size_t first, std::size_t n) {
    tile.read(x, features, first, n, gate_first, interleaved);
    const float* factors = smooth ? smooth.read(first, n, smooth_buffer) : nullptr;
    for_vectors(n, [&](std::size_t i, std::size_t count) HWY_ATTR {
      Real v = silu(load_n(tile.gate + i, count)) * Real(load_n(tile.up + i, count));
      if (factors) v = v * Real(load_n(factors + i, count));
      store_n(v.v, result.data + i, count);
    });
    return result.data;
  }
};

void silu_and_mul_quant_rows(const LaunchArgs& args, const SiluAndMulQuant& op, std::int64_t begin, std::int64_t end) {
  const Rows from(args.inputs[0]), codes(args.outputs[0]);
  GatedRow row;
  row.features = static_cast<std::size_t>(codes.length());
  row.gate_first = op.gate_first;
  row.interleaved = op.interleaved;
  if (args.has(smooth_operand)) row.smooth = {args.inputs[smooth_operand].as<std::byte>(), args.inputs[smooth_operand].dtype};
  const AlongRow scale = scalar_or_channel(args, scale_operand), offset = scalar_or_channel(args, offset_operand);
  TileBuffer scale_buffer, offset_buffer, scaled;
  for (std::int64_t r = begin; r < end; ++r) {
    row.x = {from.row(r), args.inputs[0].dtype};
    if (!scale) {
      quantize_row(row, row.features, op.format, quantized_row(args, codes, r, 1, op.format));
      continue;
    }
    for_tiles(row.features, [&](std::size_t first, std::size_t n) HWY_ATTR {
      scale_tile(row(first, n), scale.read(first, n, scale_buffer), offset ? offset.read(first, n, offset_buffer) : nullptr, op.divide, scaled.data, n);
      write_codes(scaled.data, op.format.dtype, codes.row(r) + first, n);
    });
  }
}

void silu_and_mul_quant(const LaunchArgs& args, const SiluAndMulQuant& op) {
  args.pool->parallel_for(Rows(args.outputs[0]).count(), 1, [&](std::int64_t begin, std::int64_t end) { silu_and_mul_quant_rows(args, op, begin, end); });
}

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cermet::cpu {

HWY_EXPORT(silu_and_mul_quant);

extern const Kernel rowwise_silu_and_mul_quant{
    .name = "rowwise.silu_and_mul_quant",
    .op = OpKind::silu_and_mul_quant,
    .summary = "static: one pass; dynamic: one for the range, one to quantize; rows spread over threads",
    .bind = [](const Problem& p) -> Launcher {
      const SiluAndMulQuant op{code_format(p.attributes), p.attributes.text("gate") == "first", p.attributes.flag("interleaved"),
                               p.attributes.text("mode") == "div"};
      return [op](const LaunchArgs& args) { HWY_DYNAMIC_DISPATCH(silu_and_mul_quant)(args, op); };
    },
};

}  // namespace cermet::cpu
#endif
