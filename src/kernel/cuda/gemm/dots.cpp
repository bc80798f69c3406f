#include "kernel/cuda/gemm/dots.hpp"

#include <algorithm>

#include "base/checked.hpp"
#include "kernel/cuda/declare.hpp"
#include "kernel/cuda/gemm/stored_rows.hpp"
#include "kernel/cuda/narrow.hpp"
#include "op/products.hpp"

namespace cermet::cuda {
namespace {

constexpr std::int64_t most_dots_rows = 128, most_dots_columns = 512, longest_dots = 8192;
/// Sums of a thread beside which registers hold what is on its way.
constexpr int most_sums = 64;
constexpr ProductLoops dots_loops{.results = 2};

std::int64_t dots_bytes(DType dtype) { return static_cast<std::int64_t>(size_of(dtype)); }

/// A single row has GEMV, and rows of 16 bits are multiplied by the tensor cores as they are.
Decline declines_dots(const Problem& p) {
  if (const DType x = p.input(0).dtype; x != DType::f32)
    return fmt::format("x is {}, which tensor cores multiply", name_of(x));
  const std::int64_t rows = max_rows(p, 0);
  if (rows < 2) return "a single row, which has GEMV";
  if (rows > most_dots_rows)
    return fmt::format("up to {} rows: {} would be read for each block of columns", most_dots_rows, rows);
  const Dim n = p.outputs[0].dims.back(), k = p.input(0).dims.back();
  if (!n.is_constant() || !k.is_constant()) return "N or K is not known beforehand";
  if (n.constant() == 0 || k.constant() == 0) return "N or K is 0";
  if (n.constant() > most_dots_columns)
    return fmt::format("up to {} columns: weights of {} would be read for each block of rows", most_dots_columns,
                       n.constant());
  if (k.constant() > longest_dots) return fmt::format("K is above {}", longest_dots);
  if (k.constant() % gemm::DotsTile::run != 0)
    return fmt::format("rows of {} elements do not have whole 16 bytes", k.constant());
  return std::nullopt;
}

/// Whether four elements of a row are aligned.
bool in_fours(const TensorView& view, std::int64_t row) {
  const std::int64_t bytes = gemm::DotsTile::run * dots_bytes(view.dtype);
  return reinterpret_cast<std::uintptr_t>(view.data) % static_cast<std::uintptr_t>(bytes) == 0 &&
         row % gemm::DotsTile::run == 0;
}

}  // namespace

Decline DotsProduct::declines(const Region& region) {
  if (Decline reason = declines_dots(region.problem())) return reason;
  return Product::declines(region, dots_loops);
}

DotsProduct::DotsProduct(const Region& region, const Config& config)
    : product_(region, dots_loops),
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
                         static_cast<int>(dots_bytes(w_))}});
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

std::vector<Config> DotsProduct::configs() const {
  std::vector<Config> list(1);
  for (const int rows : {2, 4, 8})
    for (const int columns : {2, 4, 8, 16})
      if (rows * columns <= most_sums && columns / 2 < n_ && rows / 2 < most_rows_)
        list.push_back({{"rows", rows}, {"columns", columns}});
  return list;
}

gemm::DotsTile DotsProduct::best_tile(std::int64_t rows) const {
  gemm::DotsTile best{2, 2, static_cast<int>(dots_bytes(w_))};
  for (const int down : {8, 4, 2})  // of those that take as long the first, which converts fewer weights
    for (const int across : {2, 4, 8, 16}) {
      const gemm::DotsTile tile{down, across, static_cast<int>(dots_bytes(w_))};
      if (tile.sums() <= most_sums && cycles(tile, rows) < cycles(best, rows)) best = tile;
    }
  return best;
}

std::int64_t DotsProduct::items(const gemm::DotsTile& tile, std::int64_t rows) const {
  return div_up(rows, std::int64_t{tile.rows}) * div_up(n_, std::int64_t{tile.columns});
}

// Assumed, and within 0.3 of what 7 launches took (docs/notes/gemm-cuda.md): an SM gets 45 bytes a cycle from the L2,
// multiply-adds take a fifth more than their number, and lanes exchange a sum in 8 cycles. What is on its way is waited
// for once for all stages that registers hold.
double DotsProduct::cycles(const gemm::DotsTile& tile, std::int64_t rows) const {
  const auto rounds = static_cast<double>(div_up(items(tile, rows), std::int64_t{multiprocessors_}));
  const auto length = static_cast<double>(k_);
  const double copied = length * static_cast<double>(tile.rows * dots_bytes(x_) + tile.columns * dots_bytes(w_)) / 45;
  const double multiplied = 1.2 * length * tile.sums() / 128;
  const auto fills = static_cast<double>(div_up(k_, std::int64_t{gemm::DotsTile::stage}));
  const double waits = 600 * (fills / tile.stages(static_cast<int>(k_)) - 1);
  return rounds * (std::max(copied, multiplied) + waits + 8 * tile.sums() + 200);
}

double DotsProduct::seconds(const DeviceLimits& limits) const {
  constexpr double start = 2800;
  const gemm::DotsTile& tile = choices_.back().tile;
  return start / limits.clock_hz +
         std::max(cycles(tile, most_rows_) / limits.clock_hz, bytes_ / limits.read_bytes_per_second);
}

Program DotsProduct::program(const gemm::DotsTile& tile) const {
  const GeneratedType epilogue = product_.epilogue();
  const std::string config =
      fmt::format(".x = {}, .w = {}, .n = {}, .k = {}, .tile = {{{}, {}, {}}}, .constant = {}", device_name(x_),
                  device_name(w_), n_, k_, tile.rows, tile.columns, tile.w_bytes, device_name(constant_));
  return {.header = "kernel/cuda/device/gemm/dots.cuh",
          .task = fmt::format("cermet::gemm::Dots<cermet::gemm::DotsConfig{{{}}}, {}>", config, epilogue.name),
          .prelude = epilogue.source,
          .threads = gemm::DotsTile::threads,
          .shared_bytes = tile.shared_bytes(),
          .divides_warps = true};
}

std::vector<Program> DotsProduct::programs() const {
  std::vector<Program> list;
  for (const Choice& choice : choices_) list.push_back(program(choice.tile));
  for (Program& program : as_fallbacks(general_.programs())) list.push_back(std::move(program));
  return list;
}

void DotsProduct::launch(const LaunchArgs& args) const {
  const TensorView &x = *product_.given(args, product_.at.x), &w = *product_.given(args, product_.at.w),
                   &y = args.outputs[product_.y];
  if (y.elements() == 0) return;
  std::array<AxisSteps, 3> steps{steps_along(x, y.shape.rank() - 1, 1), steps_along(y, y.shape.rank() - 1, 1),
                                 AxisSteps{}};
  const RowAxes axes = merge_axes(y.shape, y.shape.rank() - 1, steps, 2);
  const std::optional<StoredRows> rows = StoredRows::of(product_, args, gemm::DotsTile::run);
  const std::int64_t x_row = axes.m() > 1 ? steps[0][0] : k_, w_row = n_ > 1 ? w.strides[0] : k_;
  if (axes.rank > 1 || !rows || !in_fours(x, x_row) || !in_fours(w, w_row))
    return general_.launch(args, choices_.size());
  const auto found = std::ranges::find_if(choices_, [&](const Choice& choice) { return rows->count <= choice.rows; });
  CERMET_ASSERT(found != choices_.end());
  gemm::DotsParams p{};
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
