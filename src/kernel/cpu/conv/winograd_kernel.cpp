// conv of 3 x 3 windows by Winograd's F(4x4, 3x3): tiles of x are transformed for some tiles at a time, which are
// multiplied at each of 36 points, and the sums are transformed to results.
#include <algorithm>
#include <atomic>

#include "base/checked.hpp"
#include "kernel/cpu/conv/pooled_store.hpp"
#include "kernel/cpu/conv/prologue.hpp"
#include "kernel/cpu/conv/weights.hpp"
#include "kernel/cpu/conv/winograd.hpp"
#include "kernel/cpu/gemm/binding.hpp"
#include "kernel/cpu/gemm/panels.hpp"
#include "kernel/roofline.hpp"
#include "op/conv.hpp"

namespace cermet::cpu {
namespace {

constexpr auto float_bytes = static_cast<std::int64_t>(sizeof(float));
/// Tiles that meet a panel in one item: four blocks of rows, or one where all of the weight stays in a cache.
constexpr std::int64_t item_tiles = 56, local_tiles = 14;
constexpr std::int64_t local_weight_bytes = 10 << 20;
/// Fewer tiles or channels do not pay for the transforms and for four times the weights.
constexpr std::int64_t least_tiles = 12, least_channels = 32;

struct Plan {
  ConvGeometry geometry;
  AnchorOperands operands;
  ConvPrologue prologue;
  bool pools;
  ConvStore store;

  explicit Plan(const Region& region)
      : geometry(conv_geometry(region.problem())),
        operands(region),
        prologue(region),
        pools(ends_with_pool(region)),
        store(pools ? without_pool(region) : region) {}
};

/// Tiles of results over all samples.
struct Tiles {
  std::int64_t samples, rows, columns;  ///< tiles
  std::int64_t count() const { return samples * rows * columns; }
  explicit Tiles(const ConvTensor& y)
      : samples(y.batch()), rows(div_up(y.dims[3], winograd_places)), columns(div_up(y.dims[4], winograd_places)) {}
};

/// How a launch is cut, and its parts of the workspace.
struct Cut {
  std::int64_t item, chunk;  ///< tiles of an item, and of those that are transformed together
  std::int64_t step;         ///< elements between transformed tiles
  std::int64_t transformed_bytes, sums_bytes;

  bool local;  ///< threads take all panels of their own tiles, which are enough to read the weight for

  Cut(std::int64_t tiles, std::int64_t channels, std::int64_t panels, int threads)
      : step(channels % 512 == 0 ? channels + 16 : channels) {
    local = winograd_points * channels * panels * panel_columns * float_bytes <= local_weight_bytes &&
            div_up(tiles, local_tiles) >= 2 * threads;
    item = std::max<std::int64_t>(1, std::min(tiles, local ? local_tiles : item_tiles));
    chunk = local ? item
                  : std::min(tiles,
                             item * std::max<std::int64_t>(1, div_up(4 * threads, std::max<std::int64_t>(1, panels))));
    transformed_bytes = round_up(winograd_points * chunk * step * float_bytes, 64);
    sums_bytes = round_up(winograd_points * item * panel_columns * float_bytes, 64);
  }
  std::int64_t total(int threads) const { return transformed_bytes * (local ? threads : 1) + sums_bytes * threads; }
};

/// All of one launch.
struct Launch {
  const ConvGeometry& g;
  const float* x;
  const ConvTensor in, out;
  const Tiles tiles;
  const Cut& cut;
  const float* weight;  ///< [panel][36][C][32]
  std::int64_t columns;
  const ConvStoreRun& store;
  float* pooled;  ///< the results where pairs of rows and columns are pooled
  TapProducts products;
  WinogradTransforms transforms;

  struct TileOrigin {
    std::int64_t sample, row, column;
  };
  /// First result of a tile.
  TileOrigin origin_of(std::int64_t tile) const {
    return {tile / tiles.columns / tiles.rows, tile / tiles.columns % tiles.rows * winograd_places,
            tile % tiles.columns * winograd_places};
  }

  /// Tile `tile` as tile `at` of a chunk, [36][chunk][step].
  void transform(std::int64_t tile, std::int64_t at, float* transformed) const {
    const TileOrigin p = origin_of(tile);
    const std::int64_t row = p.row - g.before[1], column = p.column - g.before[2];
    const WinogradPatch patch{.x = x + p.sample * in.strides[0] + row * in.strides[3] + column * in.strides[4],
                              .row_step = in.strides[3],
                              .pixel = in.strides[4],
                              .low_row = -row,
                              .high_row = in.dims[3] - row,
                              .low_column = -column,
                              .high_column = in.dims[4] - column};
    transforms.input(patch, in.channels(), transformed + at * cut.step, cut.chunk * cut.step);
  }

  /// Tiles [begin, end) of the chunk that starts at `first`, for the columns of a panel.
  void multiply(const float* transformed, std::int64_t first, std::int64_t begin, std::int64_t end, std::int64_t panel,
                float* sums) const {
    const std::int64_t channels = in.channels(), count = end - begin, blocks = div_up(count, products.block_rows);
    const TapRun run{0, channels};
    for (std::int64_t point = 0; point < winograd_points; ++point)
      for (std::int64_t b = 0; b < blocks; ++b) {
        const std::int64_t at = count * b / blocks, rows = count * (b + 1) / blocks - at;
        const float* const matrix = weight + (panel * winograd_points + point) * channels * panel_columns;
        const std::int64_t bytes = channels * panel_columns * float_bytes;
        const TapRows windows{
            .first = transformed + (point * cut.chunk + begin + at) * cut.step,
            .step = cut.step,
            .runs = &run,
            .run_count = 1,
            .begins = true,
            .ahead = Ahead::of_next(matrix + channels * panel_columns, bytes, panel_columns * float_bytes, b, blocks)};
        products.multiply[rows - 1](windows, matrix, sums + (point * cut.item + at) * panel_columns, nullptr);
      }
    for (std::int64_t t = 0; t < count; ++t) {
      alignas(64) float results[winograd_places * winograd_places * panel_columns];
      transforms.output(sums + t * panel_columns, cut.item * panel_columns, results);
      const TileOrigin origin = origin_of(first + begin + t);
      if (pooled) pool_tile(results, origin, panel);
      else store_tile(results, origin, panel);
    }
  }

  /// The maxima of the whole pairs of rows and columns of a tile.
  void pool_tile(const float* results, const TileOrigin& p, std::int64_t panel) const {
    const std::int64_t first = panel * panel_columns, width = std::min(panel_columns, columns - first),
                       pooled_rows = out.dims[3] / 2, pooled_columns = out.dims[4] / 2;
    const std::int64_t rows = std::min<std::int64_t>(winograd_places / 2, pooled_rows - p.row / 2),
                       count = std::min<std::int64_t>(winograd_places / 2, pooled_columns - p.column / 2);
    alignas(64) float values[winograd_places * winograd_places * panel_columns];
    TapStore at = store.store_at(0, first);
    at.y = values, at.y_step = panel_columns;
    products.store(results, winograd_places * winograd_places, at, width);
    store.finish(at, winograd_places * winograd_places, width);
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t c = 0; c < count; ++c) {
        const std::int64_t place = (p.sample * pooled_rows + p.row / 2 + r) * pooled_columns + p.column / 2 + c;
        pool_results(values + (2 * r * winograd_places + 2 * c) * panel_columns, width,
                     pooled + place * columns + first);
      }
  }

  void store_tile(const float* results, const TileOrigin& p, std::int64_t panel) const {
    const std::int64_t first = panel * panel_columns, width = std::min(panel_columns, columns - first);
    const std::int64_t rows = std::min<std::int64_t>(winograd_places, out.dims[3] - p.row),
                       count = std::min<std::int64_t>(winograd_places, out.dims[4] - p.column);
    for (std::int64_t r = 0; r < rows; ++r) {
      const float* const line = results + r * winograd_places * panel_columns;
      const std::int64_t place = (p.sample * out.dims[3] + p.row + r) * out.dims[4] + p.column;
      if (!store.takes_sums()) {
        store(line, first, {place, count, first, width});
        continue;
      }
      const TapStore at = store.store_at(place, first);
      products.store(line, static_cast<int>(count), at, width);
      store.finish(at, count, width);
    }
  }
};

/// Threads take some tiles and all panels each, so that what one writes stays in its cache.
void run_local(const Launch& launch, const LaunchArgs& args, std::int64_t panels) {
  const Cut& cut = launch.cut;
  std::atomic<std::int64_t> next{0};
  args.pool->run([&](int thread) {
    std::byte* const memory = args.workspace + thread * (cut.transformed_bytes + cut.sums_bytes);
    auto *const transformed = reinterpret_cast<float*>(memory), *const sums = reinterpret_cast<float*>(
                                                                    memory + cut.transformed_bytes);
    const std::int64_t count = launch.tiles.count(), items = div_up(count, cut.item);
    for (std::int64_t i = next.fetch_add(1); i < items; i = next.fetch_add(1)) {
      const std::int64_t first = count * i / items, own = count * (i + 1) / items - first;
      for (std::int64_t t = 0; t < own; ++t) launch.transform(first + t, t, transformed);
      for (std::int64_t panel = 0; panel < panels; ++panel) launch.multiply(transformed, first, 0, own, panel, sums);
    }
  });
}

/// Threads transform a chunk of tiles together, then take panels of it.
void run_together(const Launch& launch, const LaunchArgs& args, std::int64_t panels) {
  const Cut& cut = launch.cut;
  auto* const transformed = reinterpret_cast<float*>(args.workspace);
  for (std::int64_t first = 0, count = launch.tiles.count(); first < count; first += cut.chunk) {
    const std::int64_t chunk = std::min(cut.chunk, count - first), items = div_up(chunk, cut.item);
    args.pool->parallel_for(chunk, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t t = begin; t < end; ++t) launch.transform(first + t, t, transformed);
    });
    std::atomic<std::int64_t> next{0};
    args.pool->run([&](int thread) {
      auto* const sums = reinterpret_cast<float*>(args.workspace + cut.transformed_bytes + thread * cut.sums_bytes);
      for (std::int64_t i = next.fetch_add(1); i < items * panels; i = next.fetch_add(1))
        launch.multiply(transformed, first, chunk * (i % items) / items, chunk * (i % items + 1) / items, i / items,
                        sums);
    });
  }
}

void conv_winograd(const LaunchArgs& args, const Plan& plan) {
  const TensorView weight = plan.operands(args, 1), &y = args.outputs[plan.store.result];
  if (y.elements() == 0) return;
  const TensorView image = plan.prologue.transposes ? plan.prologue.transposed(args) : plan.operands(args, 0);
  const ConvTensor read = conv_tensor(image, true);
  ConvTensor out = conv_tensor(y, true);
  if (plan.pools)
    for (const std::size_t axis : {1, 2})
      out.dims[axis + 2] =
          read.dims[axis + 2] + plan.geometry.before[axis] + plan.geometry.after[axis] - (winograd_taps - 1);
  const Tiles tiles(out);
  const std::int64_t panels = panel_count(weight.shape[0]);
  const Cut cut(tiles.count(), weight.shape[1], panels, args.pool->size());
  const ConvStoreRun store(plan.store, args);
  const TensorView x =
      plan.prologue.transposes ? plan.prologue.transposed(args, args.workspace + cut.total(args.pool->size())) : image;
  const Launch launch{.g = plan.geometry,
                      .x = x.as<const float>(),
                      .in = conv_tensor(x, true),
                      .out = out,
                      .tiles = tiles,
                      .cut = cut,
                      .weight = weight.as<const float>(),
                      .columns = weight.shape[0],
                      .store = store,
                      .pooled = plan.pools ? y.as<float>() : nullptr,
                      .products = tap_products(),
                      .transforms = winograd_transforms()};
  if (cut.local) run_local(launch, args, panels);
  else run_together(launch, args, panels);
}

Decline declines(const Region& region) {
  const Problem& p = region.problem();
  const ConvGeometry g = conv_geometry(p);
  if (!g.channels_last) return "the layout is nchw";
  if (p.input(0).dtype != DType::f32) return fmt::format("x is {}, not f32", name_of(p.input(0).dtype));
  if (g.axes != 2 || g.kernel != ConvGeometry::Axes{1, 3, 3} || g.stride != ConvGeometry::Axes{1, 1, 1} ||
      g.dilation != ConvGeometry::Axes{1, 1, 1})
    return "the windows are not 3 x 3 with a stride of 1";
  if (g.group != 1) return "channels are in groups";
  if (!p.is_constant(1)) return "weight is not constant, so it cannot be transformed once";
  if (p.size(1, 1) % winograd_channels != 0) return fmt::format("C is no multiple of {}", winograd_channels);
  if (p.size(1, 1) < least_channels || p.size(1, 0) < least_channels)
    return fmt::format("less than {} channels", least_channels);
  const TensorView y(nullptr, DType::f32, bind(p.outputs[0].dims, p.maximum));
  if (Tiles(conv_tensor(y, true)).count() < least_tiles)
    return fmt::format("less than {} tiles of 4 x 4 results", least_tiles);
  if (Decline reason = ConvPrologue::declines(region)) return reason;
  return ends_with_pool(region) ? declines_pool(region) : ConvStore::declines_after(region);
}

std::int64_t workspace(const Region& region, int threads) {
  const Problem& p = region.problem();
  const TensorView y(nullptr, DType::f32, bind(p.outputs[0].dims, p.maximum));
  return ConvPrologue(region).transposed_bytes(region) +
         Cut(Tiles(conv_tensor(y, true)).count(), p.size(1, 1), panel_count(p.size(1, 0)), threads).total(threads);
}

/// A quarter of the products, and transforms that take about as long again where channels are few.
double cost(const Region& region, const DeviceLimits& limits) {
  return roofline_seconds(region, 2 * limits.f32_operations_per_second, limits);
}

}  // namespace

extern const Kernel conv_winograd_nhwc{
    .name = "conv.winograd",
    .op = OpKind::conv,
    .summary =
        "F(4x4, 3x3) for 3 x 3 windows of stride 1: a quarter of the products, errors that follow the largest of 6 x 6 "
        "pixels",
    .fuses = true,
    .declines = declines,
    .bind = [](const Region& region) -> Launcher {
      return [plan = Plan(region)](const LaunchArgs& args) { conv_winograd(args, plan); };
    },
    .weight_layout = [](const Region& region, std::size_t operand) -> const WeightLayout* {
      return region.operand_of(1) == operand ? &winograd_panels : nullptr;
    },
    .workspace = workspace,
    .cost = cost,
};

}  // namespace cermet::cpu
