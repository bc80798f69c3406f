#include "kernel/cuda/gemm/hopper.hpp"

#include "base/checked.hpp"
#include "kernel/cuda/device/gemm/parts.hpp"
#include "op/grouped_work.hpp"
#include "op/products.hpp"

namespace cermet::cuda {
namespace {

/// The tensor cores add fp8 products with about 14 significant bits, so sums move to float32 registers after every 128
/// or 256 reduction steps. Measured on normal data, the largest error is then 0.8 of the bound of float32 sums at K =
/// 1024 with 128 steps, 0.6 at 2048 with 256, and falls as K grows.
constexpr std::int64_t shortest_fp8 = 1024;
/// Measured on an H200: docs/notes/gemm-cuda.md, "A second result".
constexpr std::int64_t most_rows_of_two = 64;
int fp8_stages(std::int64_t k) { return k < 2048 ? 1 : 2; }

bool is_fp8(DType dtype) { return dtypes::fp8.contains(dtype); }

bool known(const Dim& dim) { return dim.is_constant(); }

bool knows_rows(const Problem& p) {
  const Dims& y = p.outputs[0].dims;
  return std::all_of(y.begin(), y.end(), known);
}

/// Whether the epilogue's values of places and of columns need registers beside each other, which 128 sums do not
/// leave.
bool reads_many(const Product& product) {
  const auto of_places = [](const EpilogueExtra& extra) { return extra.extent == TileProgram::Extent::element; };
  return std::ranges::any_of(product.extras(), of_places) &&
         std::ranges::any_of(product.extras(), &EpilogueExtra::is_side_by_side);
}

Decline declines_types(const Problem& p) {
  const DType a = p.input(0).dtype, b = p.input(1).dtype;
  const bool splits = a == DType::f32 && b == DType::bf16,
             same = a == b && (a == DType::bf16 || a == DType::f16 || a == DType::i8);
  if (!splits && !same && !(is_fp8(a) && is_fp8(b)))
    return fmt::format("no instruction multiplies {} with {}", name_of(a), name_of(b));
  return std::nullopt;
}

}  // namespace

Decline HopperProduct::declines(const Region& region) {
  const Problem& p = region.problem();
  if (p.target->compute_capability != 90) return "needs compute capability 9.0";
  if (Decline reason = declines_types(p)) return reason;
  const OpKind op = p.op->kind;
  if (op == OpKind::matmul && (p.attributes.flag("transpose_a") || !p.attributes.flag("transpose_b")))
    return "an operand is not contiguous along the reduction";
  if (op == OpKind::matmul && p.input(0).dtype == DType::f32) return "a is f32";
  if (Decline reason = Product::declines(region, GeneralProduct::loops)) return reason;
  const Product product(region, GeneralProduct::loops);
  if (product.also && max_rows(p, 0) > most_rows_of_two)
    return fmt::format("two results of more than {} rows: the second in a launch of its own was faster",
                       most_rows_of_two);
  if (product.blocked && product.at.w_scale >= 0 && product.right.blocks == 1)
    return "scales of rows are of blocks and those of columns are not";
  const Dim n = p.outputs[0].dims.back(), k = p.input(0).dims.back();
  if (!known(n) || !known(k)) return "N or K is not known beforehand";
  const std::int64_t columns = n.constant() / (product.gated ? 2 : 1), length = k.constant();
  if (columns == 0 || length == 0) return "N or K is 0";
  if (product.gated && product.blocked && product.at.w_scale >= 0 && columns % 128 != 0)
    return fmt::format("halves of {} columns are not whole blocks, which share scales", columns);
  const DType b = p.input(1).dtype;
  if (length * bytes_of(b) % 16 != 0)
    return fmt::format("rows of {} {} do not have whole 16 bytes", length, name_of(b));
  if (columns * bytes_of(product.out) % 16 != 0 || (product.also && columns * bytes_of(product.also->out) % 16 != 0))
    return fmt::format("rows of {} results do not have whole 16 bytes", columns);
  if (is_fp8(b) && length < shortest_fp8)
    return fmt::format("K is below {}: the tensor cores' sums of fp8 would show", shortest_fp8);
  if (op == OpKind::grouped_linear && !known(p.input(1).dims[0])) return "the number of groups is not known beforehand";
  if (op == OpKind::grouped_linear && p.input(1).dims[0] == Dim(0)) return "no group has a weight";
  return std::nullopt;
}

HopperProduct::HopperProduct(const Region& region, const Config& config, HopperWindowRows windows, HopperTiles tiles)
    : op_(region.problem().op->kind),
      product_(region, GeneralProduct::loops),
      windows_(std::move(windows)),
      a_(region.problem().input(0).dtype),
      b_(region.problem().input(1).dtype),
      general_(region, GeneralProduct::Programs::small) {
  const Problem& p = region.problem();
  n_ = p.outputs[0].dims.back().constant() / (product_.gated ? 2 : 1);
  k_ = p.input(0).dims.back().constant();
  constant_b_ =
      p.is_constant(1) && (product_.at.w_up < 0 || region.is_constant(static_cast<std::size_t>(product_.at.w_up)));
  dual_ = product_.has_two_weights();
  grouped_ = op_ == OpKind::grouped_linear;
  if (grouped_) offsets_ = region.operand_type(static_cast<std::size_t>(product_.at.offsets)).dtype;
  split_ = a_ == DType::f32;
  std::int64_t rows = max_rows(p, 0);
  workspace_bytes_ = split_ ? 3 * rows * k_ * 2 : general_.workspace();

  work_.n = n_;
  work_.k_bytes = k_ * bytes_of(b_);
  work_.a_parts = split_ ? 3 : 1;
  work_.b_parts = dual_ ? 2 : 1;
  work_.a_share = windows_.share;
  work_.out_bytes = static_cast<int>(bytes_of(product_.out));
  work_.also_bytes = product_.also ? static_cast<int>(bytes_of(product_.also->out)) : 0;
  work_.vector_bytes = product_.column_sums ? 4 : 0;
  for (const EpilogueExtra& extra : product_.extras())
    if (extra.is_side_by_side()) work_.vector_bytes += static_cast<int>(bytes_of(extra.dtype));
  work_.widest = dual_ && (is_fp8(b_) || product_.blocked)           ? 64
                 : dual_ || split_ || is_fp8(b_) || product_.blocked ? 128
                 : reads_many(product_)                              ? 192
                                                                     : 256;
  work_.offsets = grouped_;
  work_.multiprocessors = p.target->multiprocessors;
  work_.operand = b_;
  Target unmeasured = *p.target;  // which programs there are does not depend on who measured, nor do results
  unmeasured.measured = nullptr;
  work_.set_limits(limits_of(&unmeasured));
  if (grouped_) work_.groups = p.input(1).dims[0].constant();
  if (op_ == OpKind::matmul) {
    const Dims& b = p.input(1).dims;
    batches_ = !std::all_of(b.begin(), b.end() - 2, [](const Dim& d) { return d == Dim(1); });
    if (batches_) {
      most_batches_ = rows / std::max<std::int64_t>(1, p.size(0, -2));
      rows = p.size(0, -2);
    }
  }
  work_.ungrouped = !grouped_ && !batches_;
  most_rows_ = rows;
  known_rows_ = knows_rows(p);
  if (!config.empty()) tiles_ = {tile_of(config)};
  else if (product_.blocked) tiles_ = {{128, dual_ ? 64 : 128}};
  else if ((tiles == HopperTiles::one || (tiles == HopperTiles::one_of_many && rows >= 4096)) && known_rows_)
    tiles_ = {best_hopper_tile(work_, rows)};
  else tiles_ = choose_hopper_tiles(work_, rows);
  rest_ = grouped_ && groups_end_in_rest(p) && !product_.column_sums &&
          std::ranges::all_of(tiles_, [&](const HopperTile& tile) { return has_few_rows(tile); });
}

bool HopperProduct::has_few_rows(const HopperTile& tile) const {
  return grouped_ && tile.block_m == 64 && 4 * most_rows_ <= tile.block_m * work_.groups;
}

bool HopperProduct::starts_early(const HopperTile& tile) const {
  if (constant_b_ && has_few_rows(tile)) return true;
  if (!constant_b_ || grouped_ || batches_) return false;
  if (!known_rows_ && tile.block_m < 128) return true;  // what few rows take
  return most_rows_ <= 128 || div_up(most_rows_, tile.block_m) * div_up(n_, tile.block_n) <= work_.multiprocessors;
}

Program HopperProduct::program(const HopperTile& tile) const {
  const int stages = hopper_stages(work_, tile);
  const gemm::HopperShape shape{tile.block_m,    tile.block_n,       work_.a_parts,   work_.b_parts,
                                work_.out_bytes, work_.vector_bytes, work_.ungrouped, work_.also_bytes};
  const char* const grouping = grouped_ ? "offsets" : batches_ ? "batches" : "none";
  std::string config = fmt::format(".a = {}, .b = {}, .n = {}, .k = {}, .block_m = {}, .block_n = {}, .stages = {}",
                                   device_name(b_ == DType::bf16 ? b_ : a_), device_name(b_), n_, k_, tile.block_m,
                                   tile.block_n, stages);
  config +=
      fmt::format(", .a_parts = {}, .dual = {}, .promote = {}, .blocked = {}, .row_scale = {}, .column_scale = {}",
                  work_.a_parts, device_name(dual_), is_fp8(b_) ? fp8_stages(k_) : 0, device_name(product_.blocked),
                  device_name(product_.at.x_scale >= 0), device_name(product_.at.w_scale >= 0));
  config += fmt::format(", .grouping = cermet::gemm::Grouping::{}, .offsets = {}", grouping, device_name(offsets_));
  if (tile.raster != gemm::hopper_raster) config += fmt::format(", .raster = {}", tile.raster);
  if (has_few_rows(tile)) config += fmt::format(", .few_rows = true, .rest = {}", device_name(rest_));
  if (starts_early(tile)) config += ", .early = true";
  if (windows_.gated) config += ", .gated = true";
  if (!windows_.config.empty()) config += fmt::format(", .windows = {}", windows_.config);
  const GeneratedType epilogue = product_.epilogue();
  return {.header = "kernel/cuda/device/gemm/hopper.cuh",
          .task = fmt::format("cermet::gemm::Hopper<cermet::gemm::HopperConfig{{{}}}, {}>", config, epilogue.name),
          .prelude = epilogue.source,
          .threads = shape.threads(),
          .shared_bytes = shape.shared_bytes(stages),
          .walk = Walk{.whole_block = true}};
}

std::vector<Program> HopperProduct::tile_programs() const {
  std::vector<Program> list;
  for (const HopperTile& tile : tiles_) list.push_back(program(tile));
  return list;
}

std::vector<Program> HopperProduct::programs() const {
  std::vector<Program> list = tile_programs();
  if (split_)
    list.push_back({.header = "kernel/cuda/device/gemm/parts.cuh",
                    .task = "cermet::gemm::Parts",
                    .threads = gemm::parts_item / 8,
                    .divides_warps = true});
  for (Program& program : as_fallbacks(general_.programs())) list.push_back(std::move(program));
  if (product_.column_sums) list.back().fallback = false;  // the sums of the weight's columns, which all launches need
  return list;
}

HopperTile HopperProduct::choose(const std::vector<HopperTile>& tiles, const HopperWork& work, std::int64_t m) {
  return *std::min_element(tiles.begin(), tiles.end(), [&](const HopperTile& a, const HopperTile& b) {
    return hopper_seconds(work, a, m) < hopper_seconds(work, b, m);
  });
}

std::vector<Config> HopperProduct::configs() const {
  std::vector<Config> list(1);
  const std::vector<HopperTile> possible = product_.blocked ? tiles_ : possible_hopper_tiles(work_);
  for (const HopperTile& tile : possible) {
    const int most = hopper_stages(work_, tile);
    for (int stages = most; stages >= 2; stages = stages > 4 ? 4 : stages - 1)
      list.push_back({{"tile_m", tile.block_m}, {"tile_n", tile.block_n}, {"stages", stages}});
  }
  if (!known_rows_ || !work_.ungrouped || product_.blocked) return list;
  for (const HopperTile& tile : further_hopper_tiles(work_, most_rows_))
    list.push_back({{"tile_m", tile.block_m}, {"tile_n", tile.block_n}, {"stages", hopper_stages(work_, tile)}});
  return list;
}

double HopperProduct::seconds(const DeviceLimits& limits) const {
  HopperWork work = work_;
  if (batches_) work.groups = most_batches_;
  const HopperTile tile = choose(tiles_, work, most_rows_);
  work.set_limits(limits);
  return hopper_launch_seconds(work, tile, most_rows_);
}

}  // namespace cermet::cuda
