// Quantization with given scales, and its inverse.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/pointwise/quantize.cpp"
#include <hwy/foreach_target.h>

#include "base/checked.hpp"
#include "kernel/cpu/pointwise/quantize_plain.hpp"
#include "kernel/cpu/pointwise/tile_region.hpp"
#include "kernel/cpu/rowwise/quantized-inl.hpp"
#include "kernel/kernel.hpp"
#include "op/operands.hpp"
#include "op/quantization.hpp"
#include "op/schema/reference.hpp"

#ifndef CERMET_QUANTIZE_ONCE
#define CERMET_QUANTIZE_ONCE
namespace cermet::cpu {
struct Dequantize {
  Granularity granularity;
  std::int64_t group;
  bool divide;
};
}  // namespace cermet::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {

/// Calls body(row, first, n) for tiles of all rows, spread over threads.
template <class Body>
void for_tiles_of_rows(ThreadPool& pool, const Rows& rows, Body&& body) {
  const std::int64_t tiles = div_up(rows.length(), static_cast<std::int64_t>(tile_size));
  pool.parallel_for(rows.count() * tiles, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t item = begin; item < end; ++item) {
      const std::size_t first = static_cast<std::size_t>(item % tiles) * tile_size;
      body(item / tiles, first, HWY_MIN(tile_size, static_cast<std::size_t>(rows.length()) - first));
    }
  });
}

void quantize(const LaunchArgs& args, bool divide) {
  const TensorView &x = args.inputs[0], &q = args.outputs[0];
  const Rows from(x), to(q);
  const AlongRow scale = scalar_or_channel(args, 1), offset = scalar_or_channel(args, 2);
  for_tiles_of_rows(*args.pool, from, [&](std::int64_t row, std::size_t first, std::size_t n) HWY_ATTR {
    TileBuffer x_buffer, scale_buffer, offset_buffer, scaled;
    const float* values = RowIn{from.row(row), x.dtype}.read(first, n, x_buffer);
    scale_tile(values, scale.read(first, n, scale_buffer), offset ? offset.read(first, n, offset_buffer) : nullptr,
               divide, scaled.data, n);
    write_quantized(scaled.data, q.dtype, to.row(row) + first, n);
  });
}

/// The scale or offset of one quantized row.
AlongRow parameter_of_row(const TensorView& view, const Dequantize& parameters, std::int64_t row) {
  if (!view.present) return {};
  switch (parameters.granularity) {
    case Granularity::tensor: return {view.as<std::byte>(), view.dtype, 0};
    case Granularity::channel: return {view.as<std::byte>(), view.dtype, 1};
    case Granularity::token: return {view.as<std::byte>() + element_offset(view, row) * 4, view.dtype, 0};
    case Granularity::group: return {Rows(view).row(row), view.dtype, static_cast<std::size_t>(parameters.group)};
  }
  return {};
}

void dequantize(const LaunchArgs& args, const Dequantize& parameters) {
  const TensorView &q = args.inputs[0], &y = args.outputs[0];
  const Rows from(q), to(y);
  const auto bytes = size_of(q.dtype);
  for_tiles_of_rows(*args.pool, from, [&](std::int64_t row, std::size_t first, std::size_t n) HWY_ATTR {
    TileBuffer quantized, scale_buffer, offset_buffer, y_buffer;
    read_quantized(from.row(row) + first * bytes, q.dtype, quantized.data, n);
    const AlongRow scale = parameter_of_row(args.inputs[1], parameters, row);
    const AlongRow offset = args.has(op::quantize::offset)
                                ? parameter_of_row(args.inputs[op::quantize::offset], parameters, row)
                                : AlongRow{};
    if (offset) {
      const float* o = offset.read(first, n, offset_buffer);
      for (std::size_t i = 0; i < n; ++i) quantized.data[i] -= o[i];
    }
    const RowOut out{to.row(row), y.dtype};
    scale_tile(quantized.data, scale.read(first, n, scale_buffer), nullptr, parameters.divide,
               out.tile(first, y_buffer), n);
    out.commit(first, n, y_buffer);
  });
}

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cermet::cpu {

HWY_EXPORT(quantize);
HWY_EXPORT(dequantize);

namespace {

Granularity granularity_of(const std::string& text) {
  return text == "tensor"    ? Granularity::tensor
         : text == "channel" ? Granularity::channel
         : text == "token"   ? Granularity::token
                             : Granularity::group;
}

}  // namespace

extern const Kernel pointwise_quantize = with_regions({
    .name = "pointwise.quantize",
    .op = OpKind::quantize,
    .summary = "tiles of all rows spread over threads",
    .bind = [](const Region& region) -> Launcher {
      const Problem& p = region.problem();
      if (is_plain_quantize(p)) {
        const Launcher tiled = by_tile_program(region);
        return tiled ? tiled : bind_plain_quantize(p);
      }
      return [divide = p.attributes.text("mode") == "div"](const LaunchArgs& args) {
        HWY_DYNAMIC_DISPATCH(quantize)(args, divide);
      };
    },
});

extern const Kernel pointwise_dequantize = with_regions({
    .name = "pointwise.dequantize",
    .op = OpKind::dequantize,
    .summary = "tiles of all rows spread over threads",
    .bind = [](const Region& region) -> Launcher {
      const Problem& p = region.problem();
      if (is_plain_dequantize(p)) {
        const Launcher tiled = by_tile_program(region);
        return tiled ? tiled : bind_plain_dequantize(p);
      }
      const Dequantize parameters{granularity_of(p.attributes.text("granularity")), p.attributes.integer("group_size"),
                                  p.attributes.text("mode") == "mul"};
      return [parameters](const LaunchArgs& args) { HWY_DYNAMIC_DISPATCH(dequantize)(args, parameters); };
    },
});

}  // namespace cermet::cpu
#endif
