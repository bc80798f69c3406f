// conv with a group for each channel, of an image that a convolution of single pixels expands: 32 channels of a few rows at a time, which stay in the
// second-level cache between the two.
#include <algorithm>
#include <cstring>

#include "base/checked.hpp"
#include "kernel/cpu/conv/depthwise_rows.hpp"
#include "kernel/cpu/conv/expanded.hpp"
#include "kernel/cpu/conv/weights.hpp"
#include "kernel/cpu/gemm/binding.hpp"
#include "kernel/cpu/gemm/panels.hpp"
#include "kernel/cpu/shared_items.hpp"
#include "kernel/roofline.hpp"

namespace cermet::cpu {
namespace {

constexpr auto float_bytes = static_cast<std::int64_t>(sizeof(float));
/// Of expanded rows, for each thread.
constexpr std::int64_t buffer_floats = (192 << 10) / float_bytes;

struct Plan {
  Expansion expansion;
  ConvGeometry geometry;
  AnchorOperands operands;
  ConvStore store;
  MultiplyDepthwise multiply;
  std::int64_t buffer_rows;

  explicit Plan(const Region& region)
      : expansion(region),
        geometry(conv_geometry(region.problem())),
        operands(region),
        store(region),
        multiply(depthwise_product(geometry.kernel[2], geometry.stride[2], geometry.dilation[2])),
        buffer_rows(rows_of_buffer(region.problem())) {}

  static std::int64_t row_floats(const Problem& p) { return p.size(0, 2) * panel_columns; }
  static std::int64_t rows_of_buffer(const Problem& p) {
    return std::clamp(buffer_floats / std::max<std::int64_t>(1, row_floats(p)), conv_geometry(p).extent(1), std::max(p.size(0, 1), conv_geometry(p).extent(1)));
  }
  std::int64_t buffer_bytes(std::int64_t width) const { return round_up(buffer_rows * width * panel_columns * float_bytes, 64); }
};

/// Rows of the expanded image that rows of results read.
struct RowsRead {
  std::int64_t stride, before, extent, rows;
  std::int64_t first(std::int64_t row) const { return std::clamp<std::int64_t>(row * stride - before, 0, rows); }
  std::int64_t last(std::int64_t row) const { return std::clamp<std::int64_t>(row * stride - before + extent, 0, rows); }
};

/// In how many bands the rows of a sample are cut: rows that two bands read are computed twice, but too few items leave threads waiting.
std::int64_t bands_of(const RowsRead& read, std::int64_t rows, std::int64_t panels, std::int64_t threads) {
  constexpr std::int64_t most = 8;
  const std::int64_t overlap = std::max<std::int64_t>(0, read.extent - read.stride);
  std::int64_t best = 1, least = -1;
  for (std::int64_t bands = 1; bands <= std::min(most, rows); ++bands) {
    const std::int64_t time = div_up(panels * bands, threads) * (div_up(rows, bands) * read.stride + overlap);
    if (least < 0 || time < least) best = bands, least = time;
  }
  return best;
}

/// All of one launch.
struct Launch {
  const Plan& plan;
  const ExpansionRun& expansion;
  const ConvStoreRun& store;
  const float* weight;
  ConvTensor expanded, out;
  RowsRead read;

  /// Rows [row, end) of a sample's results, channels [channel, channel + count).
  void run(std::int64_t sample, std::int64_t row, std::int64_t end, std::int64_t channel, std::int64_t count, float* buffer) const {
    const std::int64_t row_floats = expanded.strides[3];
    for (std::int64_t base = 0, made = 0; row < end;) {  // rows [base, made) of the expanded image are in the buffer
      const std::int64_t first = read.first(row);
      if (made > first) std::memmove(buffer, buffer + (first - base) * row_floats, static_cast<std::size_t>((made - first) * row_floats * float_bytes));
      else made = first;
      base = first;
      std::int64_t next = row + 1;
      while (next < end && read.last(next) - base <= plan.buffer_rows) ++next;
      if (const std::int64_t last = read.last(next - 1); last > made) {
        expansion.make(sample, made, last, channel, count, buffer + (made - base) * row_floats);
        made = last;
      }
      const DepthwiseRows rows{.g = plan.geometry,
                               .x = buffer - base * row_floats - channel,
                               .in = expanded,
                               .out = out,
                               .weight = weight,
                               .width = round_up(out.channels(), panel_columns),
                               .store = store,
                               .multiply = plan.multiply};
      for (; row < next; ++row) rows.run(sample * out.dims[3] + row, channel, channel + count);
    }
  }
};

void conv_expanded(const LaunchArgs& args, const Plan& plan) {
  const TensorView& y = args.outputs[plan.store.result];
  if (y.elements() == 0) return;
  const ExpansionRun expansion(plan.expansion, args);
  const ConvStoreRun store(plan.store, args);
  const ConvGeometry& g = plan.geometry;
  const ConvTensor out = conv_tensor(y, true);
  const std::int64_t width = expansion.x().dims[4], channels = out.channels(), rows = out.dims[3];
  ConvTensor expanded{expansion.x().dims, {0, 1, 0, width * panel_columns, panel_columns}};
  expanded.dims[1] = channels;
  const Launch launch{.plan = plan,
                      .expansion = expansion,
                      .store = store,
                      .weight = plan.operands(args, 1).as<const float>(),
                      .expanded = expanded,
                      .out = out,
                      .read = {g.stride[1], g.before[1], g.extent(1), expansion.x().dims[3]}};
  const std::int64_t panels = panel_count(channels), threads = args.pool->size();
  const std::int64_t bands = threads == 1 ? 1 : bands_of(launch.read, rows, panels * out.batch(), threads), items = out.batch() * bands * panels;
  SharedItems shared(items, args.pool->size());
  args.pool->run([&](int thread) {
    auto* const buffer = reinterpret_cast<float*>(args.workspace + thread * plan.buffer_bytes(width));
    for (std::int64_t item = shared.take(thread); item >= 0; item = shared.take(thread)) {
      const std::int64_t channel = item % panels * panel_columns, band = item / panels % bands;
      launch.run(item / panels / bands, rows * band / bands, rows * (band + 1) / bands, channel, std::min(panel_columns, channels - channel), buffer);
    }
  });
}

Decline declines(const Region& region) {
  if (region.anchor == 0) return "nothing is expanded before it";
  if (Decline reason = Expansion::declines(region)) return reason;
  const Problem& p = region.problem();
  if (Decline reason = declines_depthwise(p)) return reason;
  if (!p.is_constant(1)) return "weight is not constant, so it cannot be prepacked";
  if (const std::int64_t rest = p.size(1, 0) % panel_columns; rest != 0 && rest < least_depthwise_channels)
    return fmt::format("the last {} channels are less than {}", rest, least_depthwise_channels);
  if (!p.input(0).dims[1].is_constant() || !p.input(0).dims[2].is_constant()) return "the size of the image is open";
  if (region.results.front().node < region.anchor || region.results.back().node < region.anchor) return "others read the expanded image, too";
  return ConvStore::declines_after(region);
}

const WeightLayout* weight_layout(const Region& region, std::size_t operand) {
  if (region.operand_of(0, 1) == operand) return &conv_panels;
  return region.operand_of(1) == operand ? &conv_channels : nullptr;
}

}  // namespace

extern const Kernel conv_expanded_depthwise{
    .name = "conv.expanded_depthwise",
    .op = OpKind::conv,
    .summary = "a group for each channel, of what a convolution of single pixels expands in strips that stay in the second-level cache",
    .fuses = true,
    .declines = declines,
    .bind = [](const Region& region) -> Launcher { return [plan = Plan(region)](const LaunchArgs& args) { conv_expanded(args, plan); }; },
    .weight_layout = weight_layout,
    .workspace = [](const Region& region, int threads) -> std::int64_t { return threads * Plan(region).buffer_bytes(region.problem().size(0, 2)); },
    .cost = [](const Region& region, const DeviceLimits& limits) { return roofline_seconds(region, limits.f32_operations_per_second, limits); },
};

}  // namespace cermet::cpu
