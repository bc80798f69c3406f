#include "kernel/cpu/conv/expanded.hpp"

#include <algorithm>

#include "base/checked.hpp"
#include "kernel/cpu/conv/expanded_parts.hpp"
#include "kernel/cpu/gemm/amx.hpp"
#include "kernel/cpu/gemm/panels.hpp"
#include "kernel/cpu/kernels.hpp"
#include "kernel/region_part.hpp"

namespace cermet::cpu {

extern const Kernel conv_packed_nhwc, conv_parts;

namespace {

/// Pixels that are so many floats apart share few sets of the first-level cache: conv.packed copies them.
constexpr std::int64_t set_floats = 512;
/// Of a convolution whose windows are copied, which is done again for each panel.
constexpr std::int64_t most_copied_outputs = 64;

RegionPart first_part(const Region& region) {
  return part_of(region, 0, static_cast<std::size_t>(region.anchor), Expansion::node_of(region));
}

/// The kernel that takes a convolution by itself, whose bits it is to have here.
const Kernel* kernel_alone(const Region& region) {
  const auto kernels = kernels_of(OpKind::conv);
  const auto found = std::ranges::find_if(kernels, [&](const Kernel* kernel) { return !kernel->declines(region); });
  return found == kernels.end() ? nullptr : *found;
}

bool reads_single_pixels(const ConvGeometry& g) {
  constexpr ConvGeometry::Axes one{1, 1, 1}, none{};
  return g.taps() == 1 && g.stride == one && g.before == none && g.after == none;
}

}  // namespace

std::size_t Expansion::node_of(const Region& region) {
  return region.nodes[0].problem.op->kind == OpKind::transpose ? 1 : 0;
}

Decline Expansion::declines(const Region& region) {
  const std::size_t at = node_of(region), anchor = static_cast<std::size_t>(region.anchor);
  const auto fails = [&](std::string_view why) -> Decline {
    return fmt::format("{} before conv: {}", region.nodes[anchor - 1].problem.op->name, why);
  };
  if (at >= anchor || region.nodes[at].problem.op->kind != OpKind::conv) return fails("no convolution is the first");
  const Problem& p = region.nodes[at].problem;
  const ConvGeometry g = conv_geometry(p);
  if (!g.channels_last || g.axes != 2 || g.group != 1 || p.input(0).dtype != DType::f32)
    return fails("it is not of images of float32, channels last, or of groups");
  if (!region.nodes[anchor].inputs[0].is_inside() ||
      std::ranges::count_if(region.nodes[anchor].inputs, &RegionInput::is_inside) != 1)
    return fails("the convolution reads it as more than x");
  const std::int64_t inputs = p.size(1, 1), outputs = p.size(1, 0);
  const bool pixels = at == 0 && reads_single_pixels(g);
  if (inputs * g.taps() > Windows::run_limit || (pixels && inputs % set_floats == 0))
    return fails("its sums are too long, or of a multiple of 512 channels");
  if (!pixels && (outputs > most_copied_outputs ||
                  Windows::most_runs(g, inputs) > static_cast<std::int64_t>(ExpansionRun::most_runs)))
    return fails("its windows would be copied too often");
  if (!p.is_constant(1)) return fails("its weight is not constant, so it cannot be prepacked");
  const RegionPart part = first_part(region);
  if (part.region.results.size() != 1) return fails("others read it, too");
  if (Decline reason = ConvPrologue::declines(part.region)) return reason;
  if (Decline reason = ConvStore::declines_after(part.region)) return reason;
  // Winograd's sums are others, and faster than what is saved here.
  const Kernel* const alone = kernel_alone(part.region);
  if (alone != &conv_packed_nhwc && !(pixels && alone == &conv_parts))
    return fails("alone it is no product with packed panels");
  const std::optional<SumProgram> sum = SumProgram::of(product_epilogue(part.region).program);
  if (!sum || sum->residual) return fails("more than a bias and one function follow it");
  return std::nullopt;
}

Expansion::Expansion(const Region& region) {
  const RegionPart part = first_part(region);
  const auto place = [&](std::size_t operand) { return part.operands[operand].index.value(); };
  const std::size_t at = node_of(region);
  x = region.operand_of(0, 0).value(), weight = region.operand_of(at, 1).value();
  geometry = conv_geometry(region.nodes[at].problem);
  by_pixels = at == 0 && reads_single_pixels(geometry);
  by_parts = by_pixels && kernel_alone(part.region) == &conv_parts;
  prologue = ConvPrologue(part.region);
  for (std::optional<std::size_t>& operand : prologue.operands)
    if (operand) operand = place(*operand);
  sum = SumProgram::of(product_epilogue(part.region).program).value();
  if (sum.bias) bias = place(*sum.bias);
}

std::int64_t Expansion::packed_bytes(const Problem& p, std::int64_t pixels) const {
  return pixels * packed_pixel_bytes(p.size(1, 1)) + amx_overread;
}

ExpansionRun::ExpansionRun(const Expansion& expansion, const LaunchArgs& args, const Shape& expanded)
    : expansion_(expansion),
      products_(tap_products()),
      x_(expansion.prologue.transposes ? expansion.prologue.transposed(args) : args.inputs[expansion.x]),
      in_(conv_tensor(x_, true)),
      weight_(args.inputs[expansion.weight].as<const float>()),
      bias_(expansion.bias ? args.inputs[*expansion.bias].as<const float>() : nullptr),
      width_(expanded[2]),
      steps_(in_.channels() * expansion.geometry.taps()) {
  runs_[0] = {0, steps_};
  if (expansion.by_pixels) return;
  windows_.emplace(expansion.geometry, x_, TensorView(nullptr, DType::f32, expanded), products_.block_rows, 1, 1);
  run_count_ = windows_->list_runs(runs_.data());
}

void ExpansionRun::make(std::int64_t sample, std::int64_t first, std::int64_t last, std::int64_t channel,
                        std::int64_t count, const ExpandedRows& to, const ExpansionMemory& memory) const {
  const Columns columns{channel, count};
  const auto place = [&](std::int64_t row, std::int64_t column) {
    return ExpandedRows{to.at + ((row - first) * width_ + column) * to.step, to.step};
  };
  if (!windows_) {
    const float* const from = x_.as<const float>() + sample * in_.strides[0];
    if (expansion_.by_parts) return make_by_parts(from, first, last - first, columns, to, memory);
    if (in_.strides[3] == width_ * in_.strides[4])
      return make_line(from + first * in_.strides[3], in_.strides[4], (last - first) * width_, columns, to);
    for (std::int64_t row = first; row < last; ++row)
      make_line(from + row * in_.strides[3], in_.strides[4], width_, columns, place(row, 0));
    return;
  }
  auto* const copy = reinterpret_cast<float*>(memory.at);
  for (std::int64_t row = first; row < last; row += windows_->rows_at_once())
    for (std::int64_t column = 0; column < width_; column += windows_->columns_at_once()) {
      const WindowRegion region{sample, 0,
                                row,    std::min(windows_->rows_at_once(), last - row),
                                column, std::min(windows_->columns_at_once(), width_ - column)};
      windows_->copy(region, copy);
      const WindowSource source = windows_->source(region, copy);
      for (std::int64_t r = 0; r < region.rows; ++r)
        make_line(source.first + r * source.row_step, source.column_step, region.columns, columns,
                  place(row + r, column));
    }
}

/// Rows of single pixels, which are packed one after the other; `from`: the sample's.
void ExpansionRun::make_by_parts(const float* from, std::int64_t first, std::int64_t rows, const Columns& columns,
                                 const ExpandedRows& to, const ExpansionMemory& memory) const {
  const std::int64_t row_bytes = width_ * packed_pixel_bytes(steps_), panel_bytes = packed_panel_bytes(steps_);
  const bool one_line = in_.strides[3] == width_ * in_.strides[4];
  const std::int64_t lines = one_line ? 1 : rows, places = rows / lines * width_;
  for (std::int64_t line = 0; line < lines; ++line) {
    std::byte* const packed = memory.at + (first + line - memory.first_row) * row_bytes;
    if (memory.packs) pack_pixels({from + (first + line) * in_.strides[3], in_.strides[4], places, steps_}, packed);
    const TapStore store{.y = to.at + line * width_ * to.step,
                         .y_step = to.step,
                         .bias = bias_ ? bias_ + columns.channel : nullptr,
                         .residual = nullptr,
                         .residual_step = 0,
                         .low = expansion_.sum.low,
                         .high = expansion_.sum.high};
    PackedPixels{packed, places, steps_}.multiply(
        reinterpret_cast<const std::byte*>(weight_) + columns.channel / panel_columns * panel_bytes, columns.count,
        products_, expansion_.sum, store);
  }
}

/// Neighbouring places, whose windows are `step` elements apart.
void ExpansionRun::make_line(const float* from, std::int64_t step, std::int64_t places, const Columns& columns,
                             const ExpandedRows& to) const {
  for (std::int64_t c = 0; c < columns.count; c += panel_columns)
    make_panel(from, step, places, {columns.channel + c, std::min(panel_columns, columns.count - c)},
               {to.at + c, to.step});
}

void ExpansionRun::make_panel(const float* from, std::int64_t step, std::int64_t places, const Columns& columns,
                              const ExpandedRows& to) const {
  alignas(64) float tile[most_tap_rows * panel_columns];
  const std::int64_t blocks = div_up(places, products_.block_rows);
  const float* const panel = weight_ + columns.channel * steps_;
  const SumProgram& sum = expansion_.sum;
  TapStore store{.y = to.at,
                 .y_step = to.step,
                 .bias = bias_ ? bias_ + columns.channel : nullptr,
                 .residual = nullptr,
                 .residual_step = 0,
                 .low = sum.low,
                 .high = sum.high};
  for (std::int64_t b = 0; b < blocks; ++b) {
    const std::int64_t first = places * b / blocks, rows = places * (b + 1) / blocks - first;
    store.y = to.at + first * to.step;
    products_.multiply[rows - 1]({from + first * step, step, runs_.data(), run_count_, columns.count, true}, panel,
                                 tile, &store);
    if (!sum.function) continue;
    const auto width = static_cast<std::size_t>(to.step);
    const TileOperand operand{store.y, width, 1};
    sum.function(&operand, {store.y, width, static_cast<std::size_t>(rows), static_cast<std::size_t>(columns.count)},
                 sum.parameters.data());
  }
}

}  // namespace cermet::cpu
