// Which products the Hopper GEMM takes, its tiles, programs, configurations and cost, and the kernels; launches are in
// hopper_launch.cpp.
#include "kernel/cuda/gemm/hopper.hpp"

#include "base/checked.hpp"
#include "kernel/cuda/config_text.hpp"
#include "kernel/cuda/device/gemm/parts.hpp"
#include "kernel/cuda/gemm/gate_cut.hpp"
#include "kernel/cuda/gemm/unweighted_rows.hpp"
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

HopperTile hopper_tile_of(const Config& config) {
  const auto field = [&](std::string_view name) { return static_cast<int>(config.at(name)); };
  return {field("tile_m"), field("tile_n"), field("stages"),
          static_cast<int>(config.find("raster").value_or(gemm::hopper_raster))};
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
  if (product.second && max_rows(p, 0) > most_rows_of_two)
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
  if (length * byte_size(b) % 16 != 0)
    return fmt::format("rows of {} {} do not have whole 16 bytes", length, name_of(b));
  if (columns * byte_size(product.out) % 16 != 0 ||
      (product.second && columns * byte_size(product.second->out) % 16 != 0))
    return fmt::format("rows of {} results do not have whole 16 bytes", columns);
  if (is_fp8(b) && length < shortest_fp8)
    return fmt::format("K is below {}: the tensor cores' sums of fp8 would show", shortest_fp8);
  if (op == OpKind::grouped_linear && !known(p.input(1).dims[0])) return "the number of groups is not known beforehand";
  if (op == OpKind::grouped_linear && p.input(1).dims[0] == Dim(0)) return "no group has a weight";
  return std::nullopt;
}

HopperProduct::HopperProduct(const Region& region, const Config& config, const HopperRows& rows, HopperTiles tiles)
    : op_(region.problem().op->kind),
      product_(region, GeneralProduct::loops),
      x_type_(region.problem().input(0).dtype),
      general_(region, GeneralProduct::Programs::small) {
  const Problem& p = region.problem();
  n_ = p.outputs[0].dims.back().constant() / (product_.gated ? 2 : 1);
  k_ = p.input(0).dims.back().constant();
  constant_b_ =
      p.is_constant(1) && (product_.at.w_up < 0 || region.is_constant(static_cast<std::size_t>(product_.at.w_up)));
  known_rows_ = knows_rows(p);
  most_rows_ = max_rows(p, 0);
  set_config(region, rows);
  set_work(region, rows);
  if (!config.empty()) tiles_ = {hopper_tile_of(config)};
  else if (product_.blocked) tiles_ = {{128, config_.dual ? 64 : 128}};
  else if ((tiles == HopperTiles::one || (tiles == HopperTiles::one_of_many && most_rows_ >= 4096)) && known_rows_)
    tiles_ = {best_hopper_tile(work_, most_rows_)};
  else tiles_ = choose_hopper_tiles(work_, most_rows_);
  config_.unweighted = config_.grouped && has_unweighted_group(p) && !product_.column_sums &&
                       std::ranges::all_of(tiles_, [&](const HopperTile& tile) { return has_few_rows(tile); });
}

void HopperProduct::set_config(const Region& region, const HopperRows& rows) {
  const Problem& p = region.problem();
  config_.b = p.input(1).dtype;
  config_.a = config_.b == DType::bf16 ? config_.b : x_type_;
  config_.n = static_cast<int>(n_);
  config_.k = static_cast<int>(k_);
  config_.a_parts = x_type_ == DType::f32 ? 3 : 1;
  config_.dual = product_.has_two_weights();
  config_.promote = is_fp8(config_.b) ? fp8_stages(k_) : 0;
  config_.blocked = product_.blocked;
  config_.row_scale = product_.at.x_scale >= 0;
  config_.column_scale = product_.at.w_scale >= 0;
  config_.gated = rows.gated;
  config_.windows = rows.windows;
  if (op_ == OpKind::grouped_linear) {
    config_.grouped = true;
    config_.offsets = region.operand_type(static_cast<std::size_t>(product_.at.offsets)).dtype;
  }
  if (op_ != OpKind::matmul) return;
  const Dims& b = p.input(1).dims;
  if (std::all_of(b.begin(), b.end() - 2, [](const Dim& d) { return d == Dim(1); })) return;
  config_.batched = true;
}

void HopperProduct::set_work(const Region& region, const HopperRows& rows) {
  const Problem& p = region.problem();
  workspace_bytes_ = is_split() ? 3 * most_rows_ * k_ * 2 : general_.workspace();
  if (config_.batched) {
    most_batches_ = most_rows_ / std::max<std::int64_t>(1, p.size(0, -2));
    most_rows_ = p.size(0, -2);
  }
  work_.n = n_;
  work_.k_bytes = k_ * byte_size(config_.b);
  work_.a_parts = config_.a_parts;
  work_.b_parts = config_.dual ? 2 : 1;
  work_.a_share = rows.share;
  work_.out_bytes = static_cast<int>(byte_size(product_.out));
  work_.second_bytes = product_.second ? static_cast<int>(byte_size(product_.second->out)) : 0;
  work_.vector_bytes = product_.column_sums ? 4 : 0;
  for (const EpilogueExtra& extra : product_.extras())
    if (extra.is_side_by_side()) work_.vector_bytes += static_cast<int>(byte_size(extra.dtype));
  const bool promotes = is_fp8(config_.b) || config_.blocked;
  work_.widest = config_.dual && promotes                 ? 64
                 : config_.dual || is_split() || promotes ? 128
                 : reads_many(product_)                   ? 192
                                                          : 256;
  work_.offsets = config_.grouped;
  work_.multiprocessors = p.target->multiprocessors;
  work_.operand = config_.b;
  Target unmeasured = *p.target;  // which programs there are does not depend on who measured, nor do results
  unmeasured.measured = nullptr;
  work_.set_limits(limits_of(&unmeasured));
  if (config_.grouped) work_.groups = p.input(1).dims[0].constant();
  work_.ungrouped = !config_.batched && !config_.grouped;
}

bool HopperProduct::has_few_rows(const HopperTile& tile) const {
  return config_.grouped && tile.block_m == 64 && 4 * most_rows_ <= tile.block_m * work_.groups;
}

bool HopperProduct::preloads(const HopperTile& tile) const {
  if (constant_b_ && has_few_rows(tile)) return true;
  if (!constant_b_ || config_.batched || config_.grouped) return false;
  if (!known_rows_ && tile.block_m < 128) return true;  // what few rows take
  return most_rows_ <= 128 || div_up(most_rows_, tile.block_m) * div_up(n_, tile.block_n) <= work_.multiprocessors;
}

Program HopperProduct::program(const HopperTile& tile) const {
  const int stages = hopper_stages(work_, tile);
  const gemm::HopperShape shape = hopper_shape(work_, tile);
  gemm::HopperConfig config = config_;
  config.block_m = tile.block_m;
  config.block_n = tile.block_n;
  config.stages = stages;
  config.raster = tile.raster;
  config.few_rows = has_few_rows(tile);
  config.preload_b = preloads(tile);
  const GeneratedType epilogue = product_.epilogue();
  return {
      .header = "kernel/cuda/device/gemm/hopper.cuh",
      .task = fmt::format("cermet::gemm::Hopper<cermet::gemm::HopperConfig{}, {}>", config_text(config), epilogue.name),
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
  if (is_split())
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

ConfigSpace HopperProduct::space() const {
  ConfigSpace space;
  if (product_.blocked) space.add(ConfigField::fixed("tile_m", 128)).add(ConfigField::fixed("tile_n", work_.widest));
  else
    space.add(ConfigField::set("tile_m", {64, 128}))
        .add(ConfigField::set("tile_n", {32, 64, 96, 112, 128, 192, 224, 256}));
  space.add(ConfigField::range("stages", 2, 16));
  if (!config_.grouped) space.add(ConfigField::powers("raster", 1, 64).with_usual(gemm::hopper_raster));
  space.constrain(fmt::format("tile_n is 32 or below twice the {} columns", n_),
                  [n = n_](const Config& c) { return c.at("tile_n") == 32 || c.at("tile_n") < 2 * n; });
  space.constrain(fmt::format("registers hold the sums of tile_n columns, at most {}", work_.widest),
                  [widest = work_.widest](const Config& c) { return c.at("tile_n") <= widest; });
  space.constrain(fmt::format("stages * ({} * tile_m + {} * tile_n) * {} bytes, and rows of {}-byte results on their "
                              "way out, fit {} bytes of shared memory",
                              work_.a_parts, work_.b_parts, gemm::HopperShape::row_bytes, work_.out_bytes,
                              gemm::HopperShape::shared_limit),
                  [work = work_](const Config& c) {
                    return c.at("stages") <= hopper_shape(work, hopper_tile_of(c)).most_stages();
                  });
  return space;
}

double HopperProduct::seconds(const DeviceLimits& limits) const {
  HopperWork work = work_;
  if (config_.batched) work.groups = most_batches_;
  const HopperTile tile = choose(tiles_, work, most_rows_);
  work.set_limits(limits);
  return hopper_launch_seconds(work, tile, most_rows_);
}

}  // namespace cermet::cuda

// ---- Kernels

namespace cermet::cuda::gemm_hopper_kernels_file {
namespace {

/// Of tiles for a known number of rows, which models put in the order of bench/results/h200/compare/hopper-tiles.json
/// where they say that one takes less by this.
constexpr double tiles_error = 0.1;

Kernel kernel(const char* name, OpKind op, ModelError error = {}, HopperTiles tiles = HopperTiles::few) {
  const auto product = [tiles](const Region& region, const Config& config) {
    return HopperProduct(region, config, {}, tiles);
  };
  Kernel kernel = product_kernel(
      name, op,
      "warp-specialised wgmma fed by bulk tensor copies, for Hopper; float32 rows are split into three bfloat16 parts",
      product);
  kernel.space = [product](const Region& region) { return product(region, {}).space(); };
  kernel.model_error = error;
  kernel.cut = gate_cut;
  return kernel;
}

}  // namespace

extern const Kernel gemm_linear_hopper, gemm_matmul_hopper, gemm_dual_linear_hopper, gemm_scaled_mm_hopper,
    gemm_grouped_linear_hopper;
const Kernel gemm_linear_hopper = kernel("gemm.linear.hopper", OpKind::linear,
                                         {.recorded = 0.15, .of_configs = tiles_error}, HopperTiles::one_of_many);
const Kernel gemm_matmul_hopper = kernel("gemm.matmul.hopper", OpKind::matmul);
const Kernel gemm_dual_linear_hopper = kernel("gemm.dual_linear.hopper", OpKind::dual_linear, {.recorded = 0.15});
const Kernel gemm_scaled_mm_hopper =
    kernel("gemm.scaled_mm.hopper", OpKind::scaled_mm, {.recorded = 0.2, .of_configs = tiles_error});
const Kernel gemm_grouped_linear_hopper = with_unweighted_rows(
    kernel("gemm.grouped_linear.hopper", OpKind::grouped_linear, {.assumes = ModelError::Assumes::group_lengths}),
    [](const Region& region, const Config& config) {
      const HopperProduct product(region, config);
      return product.makes_unweighted_rows()
                 ? MakesUnweighted([=](const LaunchArgs& args) { return product.makes_unweighted_rows(args); })
                 : nullptr;
    });

/// The product of a convolution, whose rows are the places of images: most often their number is known.
extern const Kernel gemm_places_hopper;
const Kernel gemm_places_hopper = kernel("gemm.linear.hopper", OpKind::linear, {}, HopperTiles::one);

}  // namespace cermet::cuda::gemm_hopper_kernels_file
