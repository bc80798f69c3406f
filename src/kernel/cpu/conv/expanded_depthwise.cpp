// conv with a group for each channel, of an image that another convolution makes, mostly expands: 32 channels of a few
// rows at a time, which stay in the second-level cache between the two.
#include <algorithm>
#include <cstring>
#include <utility>

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
constexpr std::int64_t wanted_floats = (192 << 10) / float_bytes;
/// Of packed pixels of a band, which stay in the second-level cache until all channels were made of them.
constexpr std::int64_t most_packed_bytes = 768 << 10;

struct Plan {
  Expansion expansion;
  ConvGeometry geometry;
  AnchorOperands operands;
  ConvStore store;
  MultiplyDepthwise multiply;
  std::int64_t height, width;  ///< of the expanded image
  std::int64_t buffer_floats;  ///< for each thread
  std::int64_t least_bands = 1;
  std::int64_t copy_bytes;  ///< likewise

  explicit Plan(const Region& region)
      : expansion(region),
        geometry(conv_geometry(region.problem())),
        operands(region),
        store(region),
        multiply(depthwise_product(geometry.kernel[2], geometry.stride[2], geometry.dilation[2])),
        height(region.problem().size(0, 1)),
        width(region.problem().size(0, 2)),
        buffer_floats(std::max(wanted_floats, geometry.extent(1) * width * panel_columns)),
        copy_bytes(round_up(copy_bytes_of(region), 64)) {}

  /// Memory for what is read of x. Bands are so many at least that their packed pixels stay in the cache.
  std::int64_t copy_bytes_of(const Region& region) {
    const Problem& first = region.nodes[Expansion::node_of(region)].problem;
    if (!expansion.by_parts) return expansion.copy_floats(first) * float_bytes;
    const std::int64_t rows = region.problem().outputs[0].dims[1].constant();
    least_bands = std::clamp<std::int64_t>(div_up(expansion.packed_bytes(first, height * width), most_packed_bytes), 1,
                                           std::max<std::int64_t>(1, rows));
    return expansion.packed_bytes(
        first, std::min(height, (div_up(rows, least_bands) - 1) * geometry.stride[1] + geometry.extent(1)) * width);
  }
  std::int64_t buffer_bytes() const { return round_up(buffer_floats * float_bytes, 64); }
  std::int64_t thread_bytes() const { return buffer_bytes() + copy_bytes; }

  /// Panels that are taken together: of small images several, where that leaves each thread as much to do.
  std::int64_t panels_at_once(std::int64_t panels, std::int64_t threads) const {
    for (const std::int64_t count : {4, 2})
      if (const std::int64_t items = div_up(panels, count);
          height * width * panel_columns * count <= buffer_floats &&
          (items >= 4 * threads || (panels % count == 0 && items % threads == 0)))
        return count;
    return 1;
  }
};

/// Rows of the expanded image that rows of results read.
struct RowsRead {
  std::int64_t stride, before, extent, rows;
  bool has_function;  ///< of what is computed before them: dear to compute twice
  std::int64_t first(std::int64_t row) const { return std::clamp<std::int64_t>(row * stride - before, 0, rows); }
  std::int64_t last(std::int64_t row) const {
    return std::clamp<std::int64_t>(row * stride - before + extent, 0, rows);
  }
};

/// In how many bands the rows of a sample are cut: rows that two bands read are computed twice, but too few items leave
/// threads waiting. With a band or several for each thread, what comes next finds its rows in the caches of the core
/// that wrote them, which is worth about an eighth.
std::int64_t bands_of(const RowsRead& read, std::int64_t rows, std::int64_t panels, std::int64_t threads,
                      std::int64_t fewest) {
  const std::int64_t most = std::max<std::int64_t>(8, fewest);
  const std::int64_t overlap = std::max<std::int64_t>(0, read.extent - read.stride) * (read.has_function ? 2 : 1);
  std::int64_t best = fewest, least = -1;
  for (std::int64_t bands = fewest; bands <= std::min(most, rows); ++bands) {
    const std::int64_t time = div_up(panels * bands, threads) * (div_up(rows, bands) * read.stride + overlap) *
                              (bands % threads == 0 ? 7 : 8);
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
  void run(std::int64_t sample, std::int64_t row, std::int64_t end, std::int64_t channel, std::int64_t count,
           float* buffer, std::byte* copy, bool packs) const {
    const ExpansionMemory memory{copy, read.first(row), packs};
    const std::int64_t row_floats = expanded.strides[3],
                       most_rows = plan.buffer_floats / std::max<std::int64_t>(1, row_floats);
    for (std::int64_t base = 0, made = 0; row < end;) {  // rows [base, made) of the expanded image are in the buffer
      const std::int64_t first = read.first(row);
      if (made > first)
        std::memmove(buffer, buffer + (first - base) * row_floats,
                     static_cast<std::size_t>((made - first) * row_floats * float_bytes));
      else made = first;
      base = first;
      std::int64_t next = row + 1;
      while (next < end && read.last(next) - base <= most_rows) ++next;
      if (const std::int64_t last = read.last(next - 1); last > made) {
        expansion.make(sample, made, last, channel, count, {buffer + (made - base) * row_floats, expanded.strides[4]},
                       memory);
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
      rows.run(sample * out.dims[3] + row, sample * out.dims[3] + next, channel, channel + count);
      row = next;
    }
  }
};

void conv_expanded(const LaunchArgs& args, const Plan& plan) {
  const TensorView& y = args.outputs[plan.store.result];
  if (y.elements() == 0) return;
  const ConvStoreRun store(plan.store, args);
  const ConvGeometry& g = plan.geometry;
  const ConvTensor out = conv_tensor(y, true);
  const std::int64_t width = plan.width, channels = out.channels(), rows = out.dims[3];
  const ExpansionRun expansion(plan.expansion, args, {out.batch(), plan.height, width, channels});
  const std::int64_t threads = args.pool->size(),
                     step = plan.panels_at_once(panel_count(channels), threads) * panel_columns,
                     parts = div_up(channels, step);
  const ConvTensor expanded{{out.batch(), channels, 1, plan.height, width}, {0, 1, 0, width * step, step}};
  const Launch launch{
      .plan = plan,
      .expansion = expansion,
      .store = store,
      .weight = plan.operands(args, 1).as<const float>(),
      .expanded = expanded,
      .out = out,
      .read = {g.stride[1], g.before[1], g.extent(1), plan.height, plan.expansion.sum.function != nullptr}};
  const std::int64_t bands = threads == 1 ? plan.least_bands
                                          : bands_of(launch.read, rows, parts * out.batch(), threads, plan.least_bands),
                     items = out.batch() * bands * parts;
  SharedItems shared(items, args.pool->size());
  args.pool->run([&](int thread) {
    std::byte* const memory = args.workspace + thread * plan.thread_bytes();
    auto* const buffer = reinterpret_cast<float*>(memory);
    std::byte* const copy = memory + plan.buffer_bytes();
    std::int64_t packed = -1;  // band of a sample
    for (std::int64_t item = shared.take(thread); item >= 0; item = shared.take(thread)) {
      const std::int64_t channel = item % parts * step, band = item / parts % bands;
      launch.run(item / parts / bands, rows * band / bands, rows * (band + 1) / bands, channel,
                 std::min(step, channels - channel), buffer, copy, std::exchange(packed, item / parts) != item / parts);
    }
  });
}

Decline declines(const Region& region) {
  if (region.anchor == 0) return "nothing is expanded before it";
  if (Decline reason = Expansion::declines(region)) return reason;
  const Problem& p = region.problem();
  if (Decline reason = declines_depthwise(p)) return reason;
  if (!p.is_constant(1)) return "weight is not constant, so it cannot be prepacked";
  if (const std::int64_t tail = p.size(1, 0) % panel_columns; tail != 0 && tail < least_depthwise_channels)
    return fmt::format("the last {} channels are less than {}", tail, least_depthwise_channels);
  if (!p.input(0).dims[1].is_constant() || !p.input(0).dims[2].is_constant()) return "the size of the image is open";
  if (region.results.front().node < region.anchor || region.results.back().node < region.anchor)
    return "others read the expanded image, too";
  return ConvStore::declines_after(region);
}

const WeightLayout* weight_layout(const Region& region, std::size_t operand) {
  if (region.operand_of(Expansion::node_of(region), 1) == operand)
    return Expansion(region).by_parts ? &conv_parts_panels : &conv_panels;
  return region.operand_of(1) == operand ? &conv_channels : nullptr;
}

}  // namespace

extern const Kernel conv_expanded_depthwise{
    .name = "conv.expanded_depthwise",
    .op = OpKind::conv,
    .summary =
        "a group for each channel, of what another convolution makes in strips that stay in the second-level cache",
    .fuses = true,
    .declines = declines,
    .bind = [](const Region& region) -> Launcher {
      return [plan = Plan(region)](const LaunchArgs& args) { conv_expanded(args, plan); };
    },
    .weight_layout = weight_layout,
    .workspace = [](const Region& region, int threads) -> std::int64_t {
      return threads * Plan(region).thread_bytes();
    },
    .cost =
        [](const Region& region, const DeviceLimits& limits) {
          return roofline_seconds(region, limits.f32_operations_per_second, limits);
        },
};

}  // namespace cermet::cpu
