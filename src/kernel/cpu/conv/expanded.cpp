#include "kernel/cpu/conv/expanded.hpp"

#include <algorithm>

#include "base/checked.hpp"
#include "kernel/cpu/conv/windows.hpp"
#include "kernel/cpu/gemm/panels.hpp"
#include "kernel/cpu/region_part.hpp"

namespace cermet::cpu {
namespace {

/// Pixels that are so many floats apart share few sets of the first-level cache: conv.packed copies them.
constexpr std::int64_t set_floats = 512;

RegionPart first_part(const Region& region) { return part_of(region, 0, static_cast<std::size_t>(region.anchor), 0); }

bool reads_single_pixels(const ConvGeometry& g) {
  constexpr ConvGeometry::Axes one{1, 1, 1}, none{};
  return g.channels_last && g.axes == 2 && g.taps() == 1 && g.group == 1 && g.stride == one && g.before == none && g.after == none;
}

}  // namespace

Decline Expansion::declines(const Region& region) {
  const auto fails = [&](std::string_view why) -> Decline { return fmt::format("{} before conv: {}", region.nodes[0].problem.op->name, why); };
  const Problem& p = region.nodes[0].problem;
  if (p.op->kind != OpKind::conv) return fails("it is no convolution");
  if (!reads_single_pixels(conv_geometry(p))) return fails("it is not of single pixels of an image with channels last");
  const RegionNode& anchor = region.nodes[static_cast<std::size_t>(region.anchor)];
  if (!anchor.inputs[0].is_inside() || std::ranges::count_if(anchor.inputs, &RegionInput::is_inside) != 1)
    return fails("the convolution reads it as more than x");
  const std::int64_t inputs = p.size(1, 1), outputs = p.size(1, 0);
  if (inputs > Windows::run_limit || inputs % set_floats == 0) return fails("it has too many channels, or a multiple of 512");
  if (!p.is_constant(1)) return fails("its weight is not constant, so it cannot be prepacked");
  const RegionPart part = first_part(region);
  if (std::ranges::any_of(part.operands, [](const RegionPart::Operand& operand) { return operand.maker.has_value(); })) return fails("it reads what follows");
  if (part.region.results.size() != 1) return fails("others read it, too");
  if (Decline reason = ConvStore::declines(part.region)) return reason;
  const std::optional<SumProgram> sum = SumProgram::of(product_epilogue(part.region).program);
  if (!sum || sum->residual) return fails("more than a bias and one function follow it");
  if (p.input(0).dtype != DType::f32 || part.region.result_type(0).dims.back() != outputs) return fails("it is not of float32");
  return std::nullopt;
}

Expansion::Expansion(const Region& region) {
  const RegionPart part = first_part(region);
  const auto place = [&](std::size_t operand) { return part.operands[operand].index.value(); };
  x = region.operand_of(0, 0).value(), weight = region.operand_of(0, 1).value();
  sum = SumProgram::of(product_epilogue(part.region).program).value();
  if (sum.bias) bias = place(*sum.bias);
}

ExpansionRun::ExpansionRun(const Expansion& expansion, const LaunchArgs& args)
    : expansion_(expansion),
      products_(tap_products()),
      x_(args.inputs[expansion.x].as<const float>()),
      weight_(args.inputs[expansion.weight].as<const float>()),
      bias_(expansion.bias ? args.inputs[*expansion.bias].as<const float>() : nullptr),
      in_(conv_tensor(args.inputs[expansion.x], true)) {}

void ExpansionRun::make(std::int64_t sample, std::int64_t first, std::int64_t last, std::int64_t channel, std::int64_t count, float* to) const {
  const float* const from = x_ + sample * in_.strides[0] + first * in_.strides[3];
  const std::int64_t width = in_.dims[4];
  if (in_.strides[3] == width * in_.strides[4]) return make_line(from, (last - first) * width, channel, count, to);
  for (std::int64_t row = 0; row < last - first; ++row) make_line(from + row * in_.strides[3], width, channel, count, to + row * width * panel_columns);
}

/// Neighbouring pixels.
void ExpansionRun::make_line(const float* from, std::int64_t pixels, std::int64_t channel, std::int64_t count, float* to) const {
  alignas(64) float tile[most_tap_rows * panel_columns];
  const std::int64_t length = in_.channels(), step = in_.strides[4], blocks = div_up(pixels, products_.block_rows);
  const float* const panel = weight_ + channel * length;
  const TapRun run{0, length};
  const SumProgram& sum = expansion_.sum;
  TapStore store{
      .y = to, .y_step = panel_columns, .bias = bias_ ? bias_ + channel : nullptr, .residual = nullptr, .residual_step = 0, .low = sum.low, .high = sum.high};
  for (std::int64_t b = 0; b < blocks; ++b) {
    const std::int64_t first = pixels * b / blocks, rows = pixels * (b + 1) / blocks - first;
    store.y = to + first * panel_columns;
    products_.multiply[rows - 1]({from + first * step, step, &run, 1, count, true}, panel, tile, &store);
    if (!sum.function) continue;
    const TileOperand operand{store.y, static_cast<std::size_t>(panel_columns), 1};
    sum.function(&operand, {store.y, static_cast<std::size_t>(panel_columns), static_cast<std::size_t>(rows), static_cast<std::size_t>(count)},
                 sum.parameters.data());
  }
}

}  // namespace cermet::cpu
