// conv over packed panels: an implicit matrix product whose rows are windows. They are read where they lie, in x or in
// a padded copy of a region of x that stays in the second-level cache.
#include <algorithm>

#include "base/checked.hpp"
#include "kernel/cpu/conv/store.hpp"
#include "kernel/cpu/conv/weights.hpp"
#include "kernel/cpu/conv/windows.hpp"
#include "kernel/cpu/gemm/binding.hpp"
#include "kernel/cpu/gemm/panels.hpp"
#include "kernel/cpu/shared_items.hpp"
#include "kernel/roofline.hpp"

namespace cermet::cpu {

extern const Kernel conv_parts;

namespace {

constexpr auto float_bytes = static_cast<std::int64_t>(sizeof(float));
/// Blocks of windows that take a slice of a panel in turn.
constexpr int group_blocks = 8;
/// Reduction steps of a slice of a panel, 128 KiB.
constexpr std::int64_t slice_steps = 1024;
/// Blocks that meet panel after panel, of weights that stay in the second-level cache.
constexpr int few_blocks = 2;
constexpr std::int64_t cached_floats = (256 << 10) / float_bytes;

struct Plan {
  ConvGeometry geometry;
  AnchorOperands operands;
  ConvPrologue prologue;
  ConvStore store;
  bool prepacked;

  explicit Plan(const Region& region)
      : geometry(conv_geometry(region.problem())),
        operands(region),
        prologue(region),
        store(region),
        prepacked(region.problem().is_constant(1) && region.problem().input(1).rank() > 3) {}
};

/// Parts of the workspace, in bytes.
struct Workspace {
  std::int64_t runs, weight, copy;

  Workspace(const ConvGeometry& g, const TensorType& weight_type, bool prepacked)
      : runs(round_up(Windows::most_runs(g, weight_type.dims[1].constant()) * static_cast<std::int64_t>(sizeof(TapRun)),
                      64)),
        weight(prepacked ? 0 : conv_panels.bytes(weight_type)),
        copy(round_up(Windows::copy_floats(g, weight_type.dims[1].constant() * g.group, most_tap_rows) * float_bytes,
                      64)) {}
  std::int64_t total(int threads) const { return runs + weight + copy * threads; }
};

/// Columns of one panel that belong to one group of channels.
struct PanelPart {
  std::int64_t group, panel, first, last;
};

/// The panels of every group. A panel that two groups share is a part of both.
struct PanelParts {
  std::int64_t outputs, groups;
  std::int64_t per_group() const {
    return groups == 1 || outputs % panel_columns == 0 ? panel_count(outputs) : panel_count(outputs) + 1;
  }
  std::int64_t count() const { return groups * per_group(); }
  PanelPart part(std::int64_t index) const {
    const std::int64_t group = index / per_group(), begin = group * outputs, end = begin + outputs;
    const std::int64_t panel = begin / panel_columns + index % per_group();
    return {group, panel, std::max(begin, panel * panel_columns), std::min(end, (panel + 1) * panel_columns)};
  }
};

/// A block of neighbouring windows in a row of a region.
struct Block {
  const float* first;
  std::int64_t place, rows;
  std::int64_t index, count;  ///< among all blocks of the region
};

/// Whether channels are moved to the back before anything else: each region would gather few at a time from far apart.
/// Otherwise as windows are copied.
bool transposes_first(const ConvPrologue& prologue, const ConvGeometry& g, std::int64_t channels) {
  return prologue.transposes && channels * g.group >= 16;
}

/// All of one launch.
struct Launch {
  const Windows& windows;
  const TapProducts& products;
  const ConvStoreRun& store;
  const TapRun* runs;
  std::int64_t run_count;
  const float* weight;
  std::int64_t panel_floats, group_channels;
  std::int64_t panel_total;  ///< 0 where all of them stay in the cache

  using Tile = float[most_tap_rows * panel_columns];

  /// What a block asks for while it multiplies a panel from step `done` on: its share of the next panel, which threads
  /// take next.
  Ahead ahead_of(const Block& block, std::int64_t panel, std::int64_t done) const {
    if (panel + 1 >= panel_total) return Ahead::none();
    Ahead ahead = Ahead::of_next(weight + (panel + 1) * panel_floats, panel_floats * float_bytes,
                                 panel_columns * float_bytes, block.index, block.count);
    ahead.at += done * ahead.step;
    return ahead;
  }

  /// All sums of some blocks and the columns of a panel, and their store.
  void multiply(const Block* blocks, int count, std::int64_t step, const PanelPart& part) const {
    alignas(64) Tile tiles[group_blocks];
    const bool takes_sums = store.takes_sums() && part.first == part.panel * panel_columns;
    const float* panel = weight + part.panel * panel_floats;
    std::int64_t done = 0;
    for (std::int64_t begin = 0, end = 0; begin < run_count || begin == 0; begin = end) {
      std::int64_t steps = 0;
      while (end < run_count && (steps == 0 || steps + runs[end].length <= slice_steps)) steps += runs[end++].length;
      const bool stores = takes_sums && end == run_count;
      for (int b = 0; b < count; ++b) {
        const TapRows rows{.first = blocks[b].first + part.group * group_channels,
                           .step = step,
                           .runs = runs + begin,
                           .run_count = end - begin,
                           .columns = part.last - part.panel * panel_columns,
                           .begins = begin == 0,
                           .ahead = ahead_of(blocks[b], part.panel, done)};
        const TapStore at = stores ? store.store_at(blocks[b].place, part.first) : TapStore{};
        products.multiply[blocks[b].rows - 1](rows, panel, tiles[b], stores ? &at : nullptr);
        if (stores) store.finish(at, blocks[b].rows, part.last - part.first);
      }
      panel += steps * panel_columns;
      done += steps;
      if (end == run_count) break;
    }
    if (takes_sums) return;
    for (int b = 0; b < count; ++b)
      store(tiles[b], part.panel * panel_columns,
            {blocks[b].place, blocks[b].rows, part.first, part.last - part.first});
  }

  /// Calls body(blocks, count) for the blocks of a region, `most` at a time.
  template <class Body>
  void for_blocks(const WindowRegion& region, const WindowSource& source, int most, Body&& body) const {
    const std::int64_t per_row = div_up(region.columns, products.block_rows);
    Block blocks[group_blocks];
    int count = 0;
    for (std::int64_t i = 0; i < region.rows * per_row; ++i) {
      const std::int64_t row = i / per_row, column = region.columns * (i % per_row) / per_row,
                         next = region.columns * (i % per_row + 1) / per_row;
      blocks[count++] = {source.first + row * source.row_step + column * source.column_step,
                         windows.row_of(region, row, column), next - column, i, region.rows * per_row};
      if (count < most && i + 1 < region.rows * per_row) continue;
      body(blocks, count);
      count = 0;
    }
  }

  /// Panels [first, last) of a region. Those that stay in the cache together meet some blocks one after the other, so
  /// that rows of y are written whole.
  void run(const WindowRegion& region, const WindowSource& source, const PanelParts& panels, std::int64_t first,
           std::int64_t last) const {
    const auto multiply_part = [&](const Block* blocks, int count, std::int64_t p) {
      if (const PanelPart part = panels.part(p); part.first < part.last)
        multiply(blocks, count, source.column_step, part);
    };
    if ((last - first) * panel_floats <= cached_floats)
      return for_blocks(region, source, few_blocks, [&](const Block* blocks, int count) {
        for (std::int64_t p = first; p < last; ++p) multiply_part(blocks, count, p);
      });
    for (std::int64_t p = first; p < last; ++p)
      for_blocks(region, source, group_blocks,
                 [&](const Block* blocks, int count) { multiply_part(blocks, count, p); });
  }
};

void conv_packed(const LaunchArgs& args, const Plan& plan) {
  const std::optional<ConvPrologueRun> prologue =
      plan.prologue.launch ? std::optional<ConvPrologueRun>(std::in_place, plan.prologue, args) : std::nullopt;
  const TensorView weight = plan.operands(args, 1), &y = args.outputs[plan.store.result];
  if (y.elements() == 0) return;
  const ConvGeometry& g = plan.geometry;
  const Workspace parts(g, weight.type(), plan.prepacked);
  const auto read = [&] {
    if (prologue) return prologue->x();
    if (!plan.prologue.transposes) return plan.operands(args, 0);
    if (!transposes_first(plan.prologue, g, weight.shape[1])) return plan.prologue.transposed(args);
    return plan.prologue.transposed(args, args.workspace + parts.total(args.pool->size()));
  };
  const TensorView x = read();
  auto* const runs = reinterpret_cast<TapRun*>(args.workspace);
  std::byte* const packed = args.workspace + parts.runs;
  std::byte* const copies = packed + parts.weight;
  if (!plan.prepacked) conv_panels.pack(weight, packed, *args.pool);
  const TapProducts products = tap_products();
  const PanelParts panels{weight.shape[0] / g.group, g.group};
  const int threads = args.pool->size();
  const std::int64_t panel_floats = weight.shape[0] == 0 ? 0 : weight.elements() / weight.shape[0] * panel_columns;
  // A region meets all panels where they stay in the cache, so that one thread writes whole rows of y.
  const bool cached = panels.count() * panel_floats <= cached_floats;
  const Windows windows(g, x, y, products.block_rows, threads, cached ? 1 : panels.count(),
                        prologue ? &*prologue : nullptr);
  const ConvStoreRun store(plan.store, args);
  const Launch launch{.windows = windows,
                      .products = products,
                      .store = store,
                      .runs = runs,
                      .run_count = windows.list_runs(runs),
                      .weight = plan.prepacked ? weight.as<const float>() : reinterpret_cast<const float*>(packed),
                      .panel_floats = panel_floats,
                      .group_channels = weight.shape[1],
                      .panel_total = cached ? 0 : panel_count(weight.shape[0])};
  // Items of some panels of a region, so that there are a few for each thread.
  const std::int64_t wanted = threads == 1 ? 1 : 8 * threads;
  const std::int64_t pieces = std::min(panels.count(), div_up(wanted, windows.region_count())),
                     items = windows.region_count() * pieces;
  SharedItems shared(items, threads);
  const auto body = [&](int thread) {
    auto* const copy = reinterpret_cast<float*>(copies + thread * parts.copy);
    std::int64_t held = -1;
    for (std::int64_t item = shared.take(thread); item >= 0; item = shared.take(thread)) {
      const std::int64_t index = item / pieces, piece = item % pieces;
      const WindowRegion region = windows.region(index);
      if (held != index) windows.copy(region, copy);
      held = index;
      const WindowSource source = windows.source(region, copy);
      launch.run(region, source, panels, panels.count() * piece / pieces, panels.count() * (piece + 1) / pieces);
    }
  };
  constexpr std::int64_t worth_threads = 1 << 15;  // multiply-adds: about a microsecond
  if (y.elements() / std::max<std::int64_t>(1, weight.shape[0]) * weight.elements() < worth_threads) return body(0);
  args.pool->run(body);
}

/// Sums of tiles are rounded otherwise, and what is around a convolution is not to change its bits.
bool goes_by_tiles_alone(const Region& region) { return !conv_parts.declines(Region(region.problem())); }

Decline declines(const Region& region) {
  if (region.problem().attributes.text("layout") != "nhwc") return "the layout is nchw";
  if (Decline reason = ConvPrologue::declines(region)) return reason;
  if (!region.is_single() && goes_by_tiles_alone(region))
    return "the convolution goes by tiles alone, which have other bits";
  return ConvStore::declines_after(region);
}

const WeightLayout* weight_layout(const Region& region, std::size_t operand) {
  return region.operand_of(1) == operand && region.problem().input(1).rank() > 3 ? &conv_panels : nullptr;
}

std::int64_t workspace(const Region& region, int threads) {
  const Plan plan(region);
  const TensorType& weight = region.problem().input(1);
  const bool first = transposes_first(plan.prologue, plan.geometry, weight.dims[1].constant());
  return Workspace(plan.geometry, weight, plan.prepacked).total(threads) +
         (first ? plan.prologue.transposed_bytes(region) : 0);
}

double cost(const Region& region, const DeviceLimits& limits) {
  return roofline_seconds(region, limits.f32_operations_per_second, limits);
}

}  // namespace

extern const Kernel conv_packed_nhwc{
    .name = "conv.packed",
    .op = OpKind::conv,
    .summary =
        "implicit product of windows and packed panels, float32; bias, residual, activation and what follows in the "
        "store",
    .fuses = true,
    .declines = declines,
    .bind = [](const Region& region) -> Launcher {
      return [plan = Plan(region)](const LaunchArgs& args) { conv_packed(args, plan); };
    },
    .weight_layout = weight_layout,
    .workspace = workspace,
    .cost = cost,
};

}  // namespace cermet::cpu
