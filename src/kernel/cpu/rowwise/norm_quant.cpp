#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/rowwise/norm_quant.cpp"
#include <hwy/foreach_target.h>

#include <cmath>

#include "kernel/cpu/rowwise/quantize_row-inl.hpp"
#include "kernel/kernel.hpp"
#include "op/norm_quant.hpp"

#ifndef CERMET_NORM_QUANT_ONCE
#define CERMET_NORM_QUANT_ONCE
namespace cermet::cpu {
struct NormQuant {
  CodeFormat format;
  bool add, divide;  ///< with a residual; static mode
  float eps, weight_offset;
};
}  // namespace cermet::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {

/// Tiles of one row of rms_norm(x + residual) * smooth, recomputed at every request.
struct NormalizedRow {
  RowIn x, residual, weight, smooth;
  float norm = 1, weight_offset = 0;
  TileBuffer x_buffer, residual_buffer, weight_buffer, smooth_buffer, sums, result;

  /// x + residual, or x.
  const float* sum(std::size_t first, std::size_t n) {
    const float* values = x.read(first, n, x_buffer);
    if (!residual) return values;
    const float* other = residual.read(first, n, residual_buffer);
    for_vectors(
        n, [&](std::size_t i, std::size_t count) HWY_ATTR { store_n(hn::Add(load_n(values + i, count), load_n(other + i, count)), sums.data + i, count); });
    return sums.data;
  }

  const float* operator()(std::size_t first, std::size_t n) {
    const float* values = sum(first, n);
    const float* w = weight ? weight.read(first, n, weight_buffer) : nullptr;
    const float* s = smooth ? smooth.read(first, n, smooth_buffer) : nullptr;
    const auto scale = hn::Set(FloatTag(), norm), offset = hn::Set(FloatTag(), weight_offset);
    for_vectors(n, [&](std::size_t i, std::size_t count) HWY_ATTR {
      auto v = hn::Mul(load_n(values + i, count), scale);
      if (w) v = hn::Mul(v, hn::Add(load_n(w + i, count), offset));
      if (s) v = hn::Mul(v, load_n(s + i, count));
      store_n(v, result.data + i, count);
    });
    return result.data;
  }
};

void set_norm(NormalizedRow& row, std::size_t length, float eps) {
  auto squares = hn::Zero(FloatTag());
  for_tiles(length, [&](std::size_t first, std::size_t n) HWY_ATTR {
    const float* values = row.sum(first, n);
    for_vectors(n, [&](std::size_t i, std::size_t count) HWY_ATTR {
      const auto v = load_n(values + i, count);
      squares = hn::MulAdd(v, v, squares);
    });
  });
  row.norm = 1.0f / std::sqrt(sum_lanes(squares) / static_cast<float>(length) + eps);
}

/// Quantizes a row with given scale and offset.
void write_static(NormalizedRow& row, std::size_t length, AlongRow scale, AlongRow offset, bool divide, DType dtype, std::byte* codes) {
  TileBuffer scale_buffer, offset_buffer, scaled;
  for_tiles(length, [&](std::size_t first, std::size_t n) HWY_ATTR {
    scale_tile(row(first, n), scale.read(first, n, scale_buffer), offset ? offset.read(first, n, offset_buffer) : nullptr, divide, scaled.data, n);
    write_codes(scaled.data, dtype, codes + first, n);
  });
}

/// Last, because the sum may overwrite the residual from which everything else was computed.
void write_sum(NormalizedRow& row, std::size_t length, RowOut out) {
  TileBuffer buffer;
  for_tiles(length, [&](std::size_t first, std::size_t n) HWY_ATTR {
    const float* sum = row.sum(first, n);
    std::memcpy(out.tile(first, buffer), sum, n * sizeof(float));
    out.commit(first, n, buffer);
  });
}

void norm_quant_rows(const LaunchArgs& args, const NormQuant& op, std::int64_t begin, std::int64_t end) {
  const NormQuantOperands operands(op.add ? 2 : 1);
  const std::size_t scale_output = op.add ? 2 : 1;
  const Rows x(args.inputs[0]), residual(args.inputs[op.add ? 1 : 0]), codes(args.outputs[0]), sum(args.outputs[op.add ? 1 : 0]);
  const auto length = static_cast<std::size_t>(x.length());
  const auto vector = [&](std::size_t operand) {
    return args.has(operand) ? RowIn{args.inputs[operand].as<std::byte>(), args.inputs[operand].dtype} : RowIn{};
  };
  NormalizedRow row;
  row.weight = vector(operands.weight);
  row.smooth = vector(operands.smooth);
  row.weight_offset = op.weight_offset;
  for (std::int64_t r = begin; r < end; ++r) {
    row.x = {x.row(r), args.inputs[0].dtype};
    if (op.add) row.residual = {residual.row(r), args.inputs[1].dtype};
    set_norm(row, length, op.eps);
    if (args.has(operands.scale)) {
      write_static(row, length, scalar_or_channel(args, operands.scale), scalar_or_channel(args, operands.offset), op.divide, op.format.dtype, codes.row(r));
    } else {
      quantize_row(row, length, op.format, quantized_row(args, codes, r, scale_output, op.format));
    }
    if (op.add) write_sum(row, length, {sum.row(r), args.outputs[1].dtype});
  }
}

void norm_quant(const LaunchArgs& args, const NormQuant& op) {
  args.pool->parallel_for(Rows(args.inputs[0]).count(), 1, [&](std::int64_t begin, std::int64_t end) { norm_quant_rows(args, op, begin, end); });
}

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cermet::cpu {

HWY_EXPORT(norm_quant);

namespace {

Launcher bind_norm_quant(const Problem& p) {
  const NormQuant op{code_format(p.attributes), p.op->kind == OpKind::add_rms_norm_quant, p.attributes.text("mode") == "div",
                     static_cast<float>(p.attributes.number("eps")), static_cast<float>(p.attributes.number("weight_offset"))};
  return [op](const LaunchArgs& args) { HWY_DYNAMIC_DISPATCH(norm_quant)(args, op); };
}

constexpr const char* const summary = "a pass for the norm, one for the range where scales are dynamic, one to quantize; rows spread over threads";

}  // namespace

extern const Kernel rowwise_rms_norm_quant{.name = "rowwise.rms_norm_quant", .op = OpKind::rms_norm_quant, .summary = summary, .bind = bind_norm_quant};
extern const Kernel rowwise_add_rms_norm_quant{
    .name = "rowwise.add_rms_norm_quant", .op = OpKind::add_rms_norm_quant, .summary = summary, .bind = bind_norm_quant};

}  // namespace cermet::cpu
#endif
