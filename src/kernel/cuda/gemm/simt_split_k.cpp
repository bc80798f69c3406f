#include "kernel/cuda/gemm/simt_split_k.hpp"

#include <algorithm>

#include "base/checked.hpp"
#include "kernel/cuda/config_text.hpp"
#include "kernel/cuda/declare.hpp"
#include "kernel/cuda/gemm/stored_rows.hpp"
#include "kernel/cuda/narrow.hpp"
#include "op/products.hpp"

namespace cermet::cuda {
namespace {

constexpr std::int64_t most_split_k_rows = 128, most_split_k_columns = 512, longest_split_k = 8192;
/// Sums of a thread beside which registers hold what is on its way.
constexpr int most_sums = 64;
constexpr ProductLoops split_k_loops{.results = 2};

/// A single row has GEMV, and rows of 16 bits are multiplied by the tensor cores as they are.
Decline declines_split_k(const Problem& p) {
  if (const DType x = p.input(0).dtype; x != DType::f32)
    return fmt::format("x is {}, which tensor cores multiply", name_of(x));
  const std::int64_t rows = max_rows(p, 0);
  if (rows < 2) return "a single row, which has GEMV";
  if (rows > most_split_k_rows)
    return fmt::format("up to {} rows: {} would be read for each block of columns", most_split_k_rows, rows);
  const Dim n = p.outputs[0].dims.back(), k = p.input(0).dims.back();
  if (!n.is_constant() || !k.is_constant()) return "N or K is not known beforehand";
  if (n.constant() == 0 || k.constant() == 0) return "N or K is 0";
  if (n.constant() > most_split_k_columns)
    return fmt::format("up to {} columns: weights of {} would be read for each block of rows", most_split_k_columns,
                       n.constant());
  if (k.constant() > longest_split_k) return fmt::format("K is above {}", longest_split_k);
  if (k.constant() % gemm::SimtSplitKTile::run != 0)
    return fmt::format("rows of {} elements do not have whole 16 bytes", k.constant());
  return std::nullopt;
}

/// Whether four elements of a row are aligned.
bool in_fours(const TensorView& view, std::int64_t row) {
  const std::int64_t bytes = gemm::SimtSplitKTile::run * byte_size(view.dtype);
  return reinterpret_cast<std::uintptr_t>(view.data) % static_cast<std::uintptr_t>(bytes) == 0 &&
         row % gemm::SimtSplitKTile::run == 0;
}

}  // namespace

Decline SimtSplitKProduct::declines(const Region& region) {
  if (Decline reason = declines_split_k(region.problem())) return reason;
  return Product::declines(region, split_k_loops);
}

SimtSplitKProduct::SimtSplitKProduct(const Region& region, const Config& config)
    : product_(region, split_k_loops),
      x_(region.problem().input(0).dtype),
      w_(region.problem().input(1).dtype),
      n_(region.problem().outputs[0].dims.back().constant()),
      k_(region.problem().input(0).dims.back().constant()),
      most_rows_(max_rows(region.problem(), 0)),
      bytes_(cost_of(region).bytes),
      multiprocessors_(region.problem().target->multiprocessors),
      constant_(region.is_constant(static_cast<std::size_t>(product_.at.w))),
      general_(region, GeneralProduct::Programs::small) {
  if (!config.empty()) {
    choices_.push_back({most_rows_,
                        {static_cast<int>(config.at("rows")), static_cast<int>(config.at("columns")),
                         static_cast<int>(byte_size(w_))}});
    return;
  }
  const Dims& y = region.problem().outputs[0].dims;
  const bool varies = !std::ranges::all_of(y, &Dim::is_constant);
  for (std::int64_t rows = varies ? 2 : most_rows_;; rows *= 2) {
    const Choice choice{std::min(rows, most_rows_), best_tile(std::min(rows, most_rows_))};
    if (!choices_.empty() && choices_.back().tile.rows == choice.tile.rows &&
        choices_.back().tile.columns == choice.tile.columns)
      choices_.back().rows = choice.rows;
    else choices_.push_back(choice);
    if (rows >= most_rows_) return;
  }
}

std::vector<Config> SimtSplitKProduct::configs() const {
  std::vector<Config> list(1);
  for (const int rows : {2, 4, 8})
    for (const int columns : {2, 4, 8, 16})
      if (rows * columns <= most_sums && columns / 2 < n_ && rows / 2 < most_rows_)
        list.push_back({{"rows", rows}, {"columns", columns}});
  return list;
}

gemm::SimtSplitKTile SimtSplitKProduct::best_tile(std::int64_t rows) const {
  gemm::SimtSplitKTile best{2, 2, static_cast<int>(byte_size(w_))};
  for (const int down : {8, 4, 2})  // of those that take as long the first, which converts fewer weights
    for (const int across : {2, 4, 8, 16}) {
      const gemm::SimtSplitKTile tile{down, across, static_cast<int>(byte_size(w_))};
      if (tile.sums() <= most_sums && cycles(tile, rows) < cycles(best, rows)) best = tile;
    }
  return best;
}

std::int64_t SimtSplitKProduct::items(const gemm::SimtSplitKTile& tile, std::int64_t rows) const {
  return div_up(rows, std::int64_t{tile.rows}) * div_up(n_, std::int64_t{tile.columns});
}

// Assumed, and within 0.3 of what 7 launches took (docs/notes/gemm-cuda.md): an SM gets 45 bytes a cycle from the L2,
// multiply-adds take a fifth more than their number, and lanes exchange a sum in 8 cycles. What is on its way is waited
// for once for all stages that registers hold.
double SimtSplitKProduct::cycles(const gemm::SimtSplitKTile& tile, std::int64_t rows) const {
  const auto rounds = static_cast<double>(div_up(items(tile, rows), std::int64_t{multiprocessors_}));
  const auto length = static_cast<double>(k_);
  const double copied = length * static_cast<double>(tile.rows * byte_size(x_) + tile.columns * byte_size(w_)) / 45;
  const double multiplied = 1.2 * length * tile.sums() / 128;
  const auto fills = static_cast<double>(div_up(k_, std::int64_t{gemm::SimtSplitKTile::stage}));
  const double waits = 600 * (fills / tile.stages(static_cast<int>(k_)) - 1);
  return rounds * (std::max(copied, multiplied) + waits + 8 * tile.sums() + 200);
}

double SimtSplitKProduct::seconds(const DeviceLimits& limits) const {
  constexpr double start = 2800;
  const gemm::SimtSplitKTile& tile = choices_.back().tile;
  return start / limits.clock_hz +
         std::max(cycles(tile, most_rows_) / limits.clock_hz, bytes_ / limits.read_bytes_per_second);
}

Program SimtSplitKProduct::program(const gemm::SimtSplitKTile& tile) const {
  const GeneratedType epilogue = product_.epilogue();
  const gemm::SimtSplitKConfig config{
      .x = x_, .w = w_, .n = static_cast<int>(n_), .k = static_cast<int>(k_), .tile = tile, .preload_w = constant_};
  return {.header = "kernel/cuda/device/gemm/simt_split_k.cuh",
          .task = fmt::format("cermet::gemm::SimtSplitK<cermet::gemm::SimtSplitKConfig{}, {}>", config_text(config),
                              epilogue.name),
          .prelude = epilogue.source,
          .threads = gemm::SimtSplitKTile::threads,
          .shared_bytes = tile.shared_bytes(),
          .divides_warps = true};
}

std::vector<Program> SimtSplitKProduct::programs() const {
  std::vector<Program> list;
  for (const Choice& choice : choices_) list.push_back(program(choice.tile));
  for (Program& program : as_fallbacks(general_.programs())) list.push_back(std::move(program));
  return list;
}

void SimtSplitKProduct::launch(const LaunchArgs& args) const {
  const TensorView &x = *product_.given(args, product_.at.x), &w = *product_.given(args, product_.at.w),
                   &y = args.outputs[product_.y];
  if (y.elements() == 0) return;
  std::array<AxisSteps, 3> steps{steps_along(x, y.shape.rank() - 1, 1), steps_along(y, y.shape.rank() - 1, 1),
                                 AxisSteps{}};
  const RowAxes axes = merge_axes(y.shape, y.shape.rank() - 1, steps, 2);
  const std::optional<StoredRows> rows = StoredRows::of(product_, args, gemm::SimtSplitKTile::run);
  const std::int64_t x_row = axes.m() > 1 ? steps[0][0] : k_, w_row = n_ > 1 ? w.strides[0] : k_;
  if (axes.rank > 1 || !rows || !in_fours(x, x_row) || !in_fours(w, w_row))
    return general_.launch(args, choices_.size());
  const auto found = std::ranges::find_if(choices_, [&](const Choice& choice) { return rows->count <= choice.rows; });
  CERMET_ASSERT(found != choices_.end());
  gemm::SimtSplitKParams p{};
  p.x = x.data;
  p.w = w.data;
  p.x_row = x_row;
  p.w_row = w_row;
  p.m = narrow(rows->count, "product", "rows");
  p.vectors = rows->vectors;
  p.to = rows->to;
  std::ranges::copy(rows->extra, p.extra);
  args.queue->run(static_cast<std::size_t>(found - choices_.begin()), items(found->tile, rows->count), p);
  declare_operands(args, {.early = {constant_ ? &w : nullptr}});
}

}  // namespace cermet::cuda

namespace cermet::cuda::gemm_simt_split_k_file {

extern const Kernel gemm_linear_dots;
const Kernel gemm_linear_dots = [] {
  Kernel kernel = product_kernel(
      "gemm.linear.dots", OpKind::linear,
      "float32 rows, at most 128 of them, and few columns, as of a router: the threads of a block share the "
      "reduction, so that all SMs have work",
      [](const Region& region, const Config& config) { return SimtSplitKProduct(region, config); });
  kernel.model_error = {.recorded = 0.3};
  return kernel;
}();

}  // namespace cermet::cuda::gemm_simt_split_k_file
