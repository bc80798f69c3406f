// conv by AMX tiles: a matrix product whose rows are windows.
#include <algorithm>

#include "base/checked.hpp"
#include "kernel/cpu/conv/weights.hpp"
#include "kernel/cpu/gemm/linear_parts.hpp"
#include "op/conv.hpp"
#include "op/products.hpp"

namespace cermet::cpu {
namespace {

/// Narrower ones and few windows are faster as float32: packing rows takes as long for any number of columns, and tiles
/// are filled up with zeros. What is before a convolution makes no difference, because it is to have the same bits with
/// a gate and without.
constexpr std::int64_t least_channels = 64, least_windows = 128, least_elements = 25000;
/// Likewise of images of few pixels.
constexpr std::int64_t few_windows = 1024, least_outputs_of_few = 96;
/// Of single pixels that are expanded to several times as many channels packing is a small part. Larger weights come
/// from memory, half as long again in parts.
constexpr std::int64_t least_expansion = 3, least_expanded_channels = 32, least_expanded_products = 4 << 20,
                       most_expanding_weight = 64 << 10;

/// Whether an image is expanded, of channels that fill chunks to three quarters at least.
bool expands(const Problem& p, const ConvGeometry& g) {
  const std::int64_t channels = p.size(1, 1), outputs = p.size(1, 0);
  return g.taps() == 1 && channels >= least_expanded_channels && 4 * channels >= 3 * round_up(channels, parts_steps) &&
         outputs >= least_expansion * channels && outputs * channels <= most_expanding_weight &&
         max_rows(p, 0) * channels * outputs >= least_expanded_products;
}

/// Elements of windows of several pixels, of which 1024 are packed at a time, with 6 bytes for each.
constexpr std::int64_t most_of_windows = 4608;

Decline parts_declines(const Region& region) {
  const Problem& p = region.problem();
  const ConvGeometry g = conv_geometry(p);
  if (!g.channels_last) return "the layout is nchw";
  if (g.group != 1) return "channels are in groups";
  if (p.input(1).rank() < 4) return "there is one spatial axis";
  const bool expanded = expands(p, g);
  const PartsSizes least{
      .rows = least_windows,
      .columns = g.taps() == 1 && max_rows(p, 0) < few_windows ? least_outputs_of_few : least_channels,
      .steps = expanded ? least_expanded_channels : least_channels};
  if (Decline reason = linear_parts_decline(p, least)) return reason;
  const std::int64_t channels = p.size(1, 1);
  if (g.taps() > 1 && g.taps() * channels > most_of_windows)
    return fmt::format("windows have more than {} elements, whose copies take memory", most_of_windows);
  if (g.taps() > 1 && channels % parts_steps != 0)
    return fmt::format("windows are of several pixels, whose {} channels are not whole chunks", channels);
  if (!expanded && max_rows(p, 0) * channels < least_elements)
    return fmt::format("x has fewer than {} elements", least_elements);
  if (Decline reason = WindowPlan::declines(region)) return reason;
  return ProductBinding::declines_after(region);
}

Launcher bind_parts(const Region& region) {
  return [binding = ProductBinding(region, {}, ProductBinding::Before::own),
          windows = WindowPlan(region)](const LaunchArgs& args) { linear_parts(args, binding, &windows); };
}

}  // namespace

extern const Kernel conv_parts{
    .name = "conv.parts",
    .op = OpKind::conv,
    .summary =
        "as gemm.linear.parts, for images and results of 64 channels or more; the gate before single pixels is "
        "multiplied into their rows",
    .fuses = true,
    .declines = parts_declines,
    .bind = bind_parts,
    .weight_layout = [](const Region& region,
                        std::size_t operand) { return region.operand_of(1) == operand ? &conv_panels : nullptr; },
    .workspace = linear_parts_workspace,
    .cost = linear_parts_cost,
};

}  // namespace cermet::cpu
