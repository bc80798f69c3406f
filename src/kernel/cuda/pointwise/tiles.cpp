#include <bit>

#include "base/checked.hpp"
#include "kernel/cuda/narrow.hpp"
#include "kernel/cuda/pointwise/pointwise.hpp"
#include "kernel/roofline.hpp"

namespace cermet::cuda {
namespace {

constexpr std::int64_t many_vectors = 132 * 2048;  // what the threads of a large GPU hold at once

/// Whether the last two dimensions of an operand are one run of elements, or one element, where the result is a run.
bool merges(const TensorView& view, const TensorView& result) {
  const int last = result.shape.rank() - 1;
  const std::int64_t outer = view.shape[last - 1], inner = view.shape[last];
  if (outer == 1 && inner == 1) return true;
  if (outer != result.shape[last - 1] || inner != result.shape[last]) return false;
  return outer == 1 || view.strides[last - 1] == inner;
}

void merge_last_two(TensorView& view) {
  Shape shape, strides;
  const int last = view.shape.rank() - 1;
  for (int axis = 0; axis < last; ++axis) {
    shape.push_back(axis == last - 1 ? view.shape[axis] * view.shape[last] : view.shape[axis]);
    strides.push_back(axis == last - 1 ? 1 : view.strides[axis]);
  }
  view.shape = shape;
  view.strides = strides;
}

}  // namespace

StridedTiles::StridedTiles(std::span<const TensorView* const> operands, int width, int vectors)
    : count_(operands.size()), width_(width) {
  CERMET_ASSERT(operands.size() <= most_operands);
  const std::size_t count = count_;
  auto& views = views_;
  const int rank = std::max(1, operands.back()->shape.rank());
  for (std::size_t i = 0; i < count; ++i) views[i] = with_rank(*operands[i], rank);
  TensorView& result = views[count - 1];
  const auto all_merge = [&] {
    for (std::size_t i = 0; i < count; ++i)
      if (!merges(views[i], result)) return false;
    return true;
  };
  while (result.shape.rank() > 1 && all_merge())
    for (std::size_t i = 0; i < count; ++i) merge_last_two(views[i]);
  // Rows are counted by the result's dimensions, so it comes first there.
  std::array<RowView, most_operands> rows;
  for (std::size_t i = 0; i < count; ++i) {
    rows[i] = {&views[i], 1};
    along_[i] = views[i].shape.back() == result.shape.back() ? 1 : 0;
  }
  strided_.emplace(std::span(rows.data(), count), count - 1);
  bool aligned = true;
  for (std::size_t i = 0; i < count; ++i) aligned = aligned && (along_[i] == 0 || strided_->aligned(i, width));
  tiles_ = Tiles(*strided_, result.shape.back(), width, aligned, vectors);
}

Tiles::Tiles(const StridedRows& strided, std::int64_t length, int width, bool aligned, int most_vectors) {
  const std::int64_t vectors = div_up(length, width);
  const bool simple = aligned && length % width == 0 && strided.dims().inner == 0;
  program = simple ? 0 : 1;
  shape.dims = strided.dims();
  shape.rows = static_cast<std::uint32_t>(strided.rows());
  shape.row_columns = static_cast<std::uint32_t>(narrow(vectors, "elementwise operator", "vectors of a row"));
  shape.length = length;
  shape.aligned = aligned;
  while ((std::int64_t{1} << shape.lanes_shift) < std::min<std::int64_t>(vectors, pointwise_threads))
    ++shape.lanes_shift;
  shape.vectors = 1;
  shape.item_columns = std::uint32_t{1} << shape.lanes_shift;
  shape.item_rows = pointwise_threads >> shape.lanes_shift;
  // A second vector for each thread keeps more loads in flight; few elements rather take more threads.
  if (simple && most_vectors > 1 && vectors * strided.rows() >= many_vectors) {
    shape.vectors = tile_vectors;
    if (vectors >= std::int64_t{tile_vectors} * shape.item_columns) {
      shape.step_columns = shape.item_columns;
      shape.item_columns *= tile_vectors;
    } else {
      shape.step_rows = shape.item_rows;
      shape.item_rows *= tile_vectors;
    }
  }
  shape.tiles_per_row = static_cast<std::uint32_t>(div_up(vectors, std::int64_t{shape.item_columns}));
  items = div_up(strided.rows(), std::int64_t{shape.item_rows}) * shape.tiles_per_row;
  narrow(items, "elementwise operator", "tiles");
  if (shape.tiles_per_row > 1) {  // rounded up, the reciprocal of 31 + log2 bits is exact enough for numerators below
                                  // 2^31 (Granlund and Montgomery, 1994)
    shape.shift = static_cast<std::uint32_t>(std::bit_width(shape.tiles_per_row - 1)) - 1;
    shape.magic = static_cast<std::uint32_t>((std::uint64_t{1} << (32 + shape.shift)) / shape.tiles_per_row + 1);
  }
}

TileChoice::TileChoice(const Config& config, int own_blocks) : blocks(own_blocks) {
  if (config.empty()) return;
  vectors = static_cast<int>(config.at("vectors"));
  blocks = static_cast<int>(config.at("blocks"));
  has_more_blocks = blocks > own_blocks;
}

std::vector<Config> tile_configs(int own_blocks) {
  std::vector<Config> list(1);
  for (const int blocks : {own_blocks, 2 * own_blocks}) list.push_back({{"vectors", 1}, {"blocks", blocks}});
  return list;
}

ConfigSpace tile_space(const std::vector<Config>& configs) {
  constexpr int most_blocks = 8;  // whose threads an SM has
  ConfigSpace space;
  if (configs.size() > 1)
    space.add(ConfigField::range("vectors", 1, tile_vectors)).add(ConfigField::range("blocks", 1, most_blocks));
  return space;
}

double tile_cost(const Region& region, const TileChoice& choice, const DeviceLimits& limits) {
  const double least = roofline_seconds(region, limits.f32_operations_per_second, limits);
  if (!region.target()) return limits.launch_seconds + least;
  constexpr double latency = 1.1e-6, vector_bytes = 16;  // of memory under load, seconds; of an operand
  const double in_flight = static_cast<double>(choice.blocks * pointwise_threads * choice.vectors) * vector_bytes;
  return limits.launch_seconds +
         least * std::max(1.0, limits.read_bytes_per_second / region.target()->multiprocessors * latency / in_flight);
}

std::vector<Program> tile_programs(const char* header, const std::function<std::string(Tiling tiling)>& task,
                                   const TileChoice& choice) {
  std::vector<Program> list;
  for (const Tiling tiling : tilings)
    list.push_back({.header = header,
                    .task = task(tiling),
                    .threads = pointwise_threads,
                    .min_blocks = tiling == Tiling::simple ? choice.blocks : 1,
                    .may_spill = choice.has_more_blocks});
  return list;
}

}  // namespace cermet::cuda
