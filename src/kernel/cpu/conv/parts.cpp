// conv of single pixels by AMX tiles: a matrix product of pixels, which lie in memory as its rows.
#include <algorithm>

#include "kernel/cpu/conv/weights.hpp"
#include "kernel/cpu/gemm/linear_parts.hpp"
#include "op/conv.hpp"
#include "op/products.hpp"

namespace cermet::cpu {
namespace {

/// Narrower ones and few pixels are faster as float32: packing rows takes as long for any number of columns, and tiles are filled up with zeros. What few
/// channels are expanded to stays in a cache where a depthwise convolution reads it (expanded.hpp), which has the bits of float32 sums.
constexpr std::int64_t least_channels = 64, least_pixels = 128, least_elements = 25000;

Decline parts_declines(const Region& region) {
  const Problem& p = region.problem();
  const ConvGeometry g = conv_geometry(p);
  if (!g.channels_last) return "the layout is nchw";
  const auto all = [](const ConvGeometry::Axes& axes, std::int64_t value) { return std::ranges::all_of(axes, [&](std::int64_t v) { return v == value; }); };
  if (g.taps() != 1 || g.group != 1 || !all(g.stride, 1) || !all(g.before, 0) || !all(g.after, 0)) return "windows are not single pixels, all of x";
  if (p.input(1).rank() < 4) return "there is one spatial axis";
  if (Decline reason = linear_parts_decline(p, {.rows = least_pixels, .columns = least_channels, .steps = least_channels})) return reason;
  if (max_rows(p, 0) * p.size(0, -1) < least_elements) return fmt::format("x has fewer than {} elements", least_elements);
  return ProductBinding::declines(region);
}

}  // namespace

extern const Kernel conv_parts{
    .name = "conv.parts",
    .op = OpKind::conv,
    .summary = "as gemm.linear.parts, for images and windows of single pixels, 64 channels or more",
    .fuses = true,
    .declines = parts_declines,
    .bind = [](const Region& region) -> Launcher { return [binding = ProductBinding(region)](const LaunchArgs& args) { linear_parts(args, binding); }; },
    .weight_layout = [](const Region& region, std::size_t operand) { return region.operand_of(1) == operand ? &conv_panels : nullptr; },
    .workspace = linear_parts_workspace,
    .cost = linear_parts_cost,
};

}  // namespace cermet::cpu
