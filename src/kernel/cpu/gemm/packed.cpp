// linear, dual_linear and grouped_linear over packed weights: one row streams them once, many work on panels that stay in the second-level cache.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/gemm/packed.cpp"
#include <hwy/foreach_target.h>

#include <cstring>

#include "kernel/cpu/gemm/bf16.hpp"
#include "kernel/cpu/gemm/tiles-inl.hpp"
#include "kernel/cpu/limits.hpp"
#include "kernel/cpu/shared_items.hpp"
#include "kernel/roofline.hpp"
#include "op/products.hpp"

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {
namespace {

/// The product of a weight type with packed rows, as float32 or, with `pairs`, as bf16.
PackedProduct make_product(const TensorView& w, bool pairs, std::byte* workspace, std::int64_t first_row) {
  const std::int64_t length = w.shape.back(), unit = panel_unit(w.dtype), element = pairs ? 2 : static_cast<std::int64_t>(sizeof(float));
  return {.multiply = pairs ? pair_products() : float_products(w.dtype),
          .units = div_up(length, unit),
          .unit_bytes = unit * panel_columns * static_cast<std::int64_t>(size_of(w.dtype)),
          .row_unit_bytes = unit * element,
          .row_bytes = round_up(length, 2) * element,
          .packed_rows = workspace,
          .first_row = first_row};
}

/// Packs bf16 rows [first, last) as pairs [k / 2][row][2].
void pack_pairs(const Rows& x, std::int64_t first, std::int64_t last, std::byte* packed) {
  constexpr std::int64_t chunk = 16, pair = 4;  // a cache line of a row; bytes
  const std::int64_t rows = last - first, whole = x.length() / 2;
  for (std::int64_t begin = 0; begin < whole; begin += chunk)
    for (std::int64_t r = 0; r < rows; ++r) {
      const std::byte* const from = x.row(first + r);
      for (std::int64_t p = begin; p < std::min(whole, begin + chunk); ++p) std::memcpy(packed + (p * rows + r) * pair, from + p * pair, pair);
    }
  if (x.length() % 2 == 0) return;
  for (std::int64_t r = 0; r < rows; ++r) {
    std::byte* const to = packed + (whole * rows + r) * pair;
    std::memset(to, 0, pair);
    std::memcpy(to, x.row(first + r) + whole * pair, pair / 2);
  }
}

void pack_rows(const Rows& rows, DType dtype, std::int64_t first, std::int64_t last, bool pairs, std::byte* packed) {
  if (pairs) pack_pairs(rows, first, last, packed);
  else pack_block(rows, dtype, first, last, round_up(rows.length(), 2), reinterpret_cast<float*>(packed));
}

/// Packs blocks of rows of x, or of what comes before the product, which is made first, behind the packed rows: `held` of them from p.first_row on.
void pack_blocks(const LaunchArgs& args, const ProductBinding& binding, const RowBlocks& blocks, std::int64_t held, std::int64_t length, const PackedProduct& p,
                 bool pairs) {
  const std::int64_t count = blocks.last - blocks.first;
  if (!binding.prologue) {
    const TensorView x = binding.operands(args, 0);
    const Rows rows(x);
    return for_blocks(blocks, count * length, *args.pool,
                      [&](std::int64_t first, std::int64_t last) { pack_rows(rows, x.dtype, first, last, pairs, p.packed(first)); });
  }
  const TensorView made = binding.prologue.rows(held, length, p.packed_rows + round_up(held * p.row_bytes, 64));
  const Rows rows(made);
  if (binding.prologue.makes_all()) binding.prologue.make_all(args, made);
  for_blocks(blocks, 4 * count * length, *args.pool, [&](std::int64_t first, std::int64_t last) {
    if (!binding.prologue.makes_all()) binding.prologue.run(args, first, last, made, p.first_row);
    pack_rows(rows, made.dtype, first - p.first_row, last - p.first_row, pairs, p.packed(first));
  });
}

/// Weights that stay in the second-level cache beside a few packed blocks of rows.
constexpr std::int64_t cached_weight_bytes = 640 << 10;

/// Threads take a few blocks of rows each, pack them and meet all panels: what is packed stays in their cache, where all rows would not.
template <class GroupBody>
void for_cached_product(const TensorView& w, bool pairs, const LaunchArgs& args, const ProductBinding& binding, const RowBlocks& blocks,
                        const GroupBody& body) {
  constexpr std::int64_t most_rows = group_blocks * block_rows;
  const TensorView x = binding.prologue ? TensorView() : binding.operands(args, 0);
  const std::int64_t panels = panel_count(w.shape[0]), groups = div_up(blocks.count(), group_blocks);
  SharedItems shared(groups, args.pool->size());
  args.pool->run([&](int thread) {
    for (std::int64_t i = shared.take(thread); i >= 0; i = shared.take(thread)) {
      const BlockGroup group{blocks, i * group_blocks, std::min(group_blocks, blocks.count() - i * group_blocks)};
      const std::int64_t first = group.first(0), last = group.first(group.count);
      PackedProduct product = make_product(w, pairs, args.workspace, first);
      TensorView made;
      if (binding.prologue) {
        made = binding.prologue.rows(args.pool->size() * most_rows, w.shape.back(), product.packed_rows + args.pool->size() * most_rows * product.row_bytes);
        made.data = made.as<std::byte>() + thread * most_rows * made.strides[0] * static_cast<std::int64_t>(size_of(made.dtype));
        made.shape[0] = last - first;
        binding.prologue.run(args, first, last, made, first);
      }
      const Rows rows(x.present ? x : made);
      const std::int64_t base = x.present ? 0 : first;
      product.packed_rows += thread * most_rows * product.row_bytes;
      for (std::int64_t b = 0; b < group.count; ++b)
        pack_rows(rows, x.present ? x.dtype : made.dtype, group.first(b) - base, group.first(b + 1) - base, pairs, product.packed(group.first(b)));
      for (std::int64_t panel = 0; panel < panels; ++panel) body(product, group, panel);
    }
  });
}

/// Packs rows, at most packed_row_limit at a time, and calls body(product, group, panel) over the whole result.
template <class GroupBody>
void for_product(const LaunchArgs& args, const ProductBinding& binding, const TensorView& w, std::int64_t weights, bool pairs, GroupBody&& body) {
  const std::int64_t rows = Rows(args.outputs[binding.result]).count();
  const bool cached = panel_count(w.shape[0]) * panel_bytes(w.dtype, w.shape[1]) * weights <= cached_weight_bytes;
  if (cached && rows >= 8 * group_blocks * block_rows * args.pool->size() && group_blocks * block_rows * args.pool->size() <= packed_row_limit)
    return for_cached_product(w, pairs, args, binding, {0, rows}, body);
  for (std::int64_t first = 0; first < rows; first += packed_row_limit) {
    const RowBlocks blocks{first, std::min(rows, first + packed_row_limit)};
    const PackedProduct product = make_product(w, pairs, args.workspace, first);
    pack_blocks(args, binding, blocks, blocks.last - blocks.first, w.shape.back(), product, pairs);
    for_tiles(blocks, panel_count(w.shape[0]), panel_bytes(w.dtype, w.shape[1]) * weights, *args.pool,
              [&](const BlockGroup& group, std::int64_t panel) { body(product, group, panel); });
  }
}

const std::byte* panel_at(const TensorView& w, std::int64_t panel) { return w.as<const std::byte>() + panel * panel_bytes(w.dtype, w.shape.back()); }

}  // namespace

void linear_packed(const LaunchArgs& args, const ProductBinding& binding, bool pairs) {
  const TensorView w = binding.operands(args, 1);
  if (args.outputs[binding.result].elements() == 0) return;
  const TileRun epilogue(binding.epilogue, args);
  for_product(args, binding, w, 1, pairs, [&](const PackedProduct& product, const BlockGroup& group, std::int64_t panel) {
    alignas(64) Tile tiles[group_blocks];
    multiply_group(product, panel_at(w, panel), group, tiles);
    for (std::int64_t i = 0; i < group.count; ++i) finish_block(epilogue, group, i, panel, w.shape[0], tiles[i]);
  });
}

void dual_linear_packed(const LaunchArgs& args, const ProductBinding& binding, bool pairs) {
  const TensorView gates = binding.operands(args, 1), ups = binding.operands(args, 2);
  if (args.outputs[binding.result].elements() == 0) return;
  const TileRun epilogue(binding.epilogue, args);
  for_product(args, binding, gates, 2, pairs, [&](const PackedProduct& product, const BlockGroup& group, std::int64_t panel) {
    alignas(64) Tile gate[group_blocks], up[group_blocks];
    multiply_group(product, panel_at(gates, panel), group, gate);
    multiply_group(product, panel_at(ups, panel), group, up);
    for (std::int64_t i = 0; i < group.count; ++i) finish_block(epilogue, group, i, panel, gates.shape[0], gate[i], &up[i]);
  });
}

void grouped_linear_packed(const LaunchArgs& args, const ProductBinding& binding, bool pairs) {
  const TensorView w = binding.operands(args, 1), offsets = binding.operands(args, 2);
  const std::int64_t count = args.outputs[binding.result].shape[0];
  const Groups groups(offsets, count, args.workspace);
  if (args.outputs[binding.result].elements() == 0) return;
  const PackedProduct product = make_product(w, pairs, args.workspace + group_workspace_bytes(w.shape[0]), 0);
  const std::int64_t panels = panel_count(w.shape[1]), panel_step = panel_bytes(w.dtype, w.shape[2]), matrix_step = round_up(panels * panel_step, 64);
  const TileRun epilogue(binding.epilogue, args);
  for (std::int64_t i = 0; i < groups.active_count; ++i) pack_blocks(args, binding, groups.rows(groups.active[i]), count, w.shape[2], product, pairs);
  for_groups(groups, panels, panel_step, *args.pool, [&](std::int64_t e, const BlockGroup& group, std::int64_t panel) {
    alignas(64) Tile tiles[group_blocks];
    multiply_group(product, panel_at(w, panel) + e * matrix_step, group, tiles);
    for (std::int64_t i = 0; i < group.count; ++i) finish_block(epilogue, group, i, panel, w.shape[1], tiles[i], nullptr, e);
  });
}

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cermet::cpu {
namespace {

HWY_EXPORT(linear_packed);
HWY_EXPORT(dual_linear_packed);
HWY_EXPORT(grouped_linear_packed);

Decline declines(const Region& region) {
  const Problem& p = region.problem();
  if (!dtypes::real.contains(p.input(0).dtype)) return fmt::format("x is {}, not a real type", name_of(p.input(0).dtype));
  if (!p.is_constant(1) || (p.op->kind == OpKind::dual_linear && !p.is_constant(2))) return "weight is not constant, so it cannot be prepacked";
  return ProductBinding::declines_around(region);
}

Decline pairs_declines(const Region& region) {
  const Problem& p = region.problem();
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}})
    if (p.input(i).dtype != DType::bf16) return fmt::format("{} is {}, not bf16", p.input_name(i), name_of(p.input(i).dtype));
  if (Decline reason = declines(region)) return reason;
  return pairs_decline();
}

const WeightLayout* weight_layout(const Region& region, std::size_t operand) {
  const Problem& p = region.problem();
  const bool is_weight = region.operand_of(1) == operand || (p.op->kind == OpKind::dual_linear && region.operand_of(2) == operand);
  return is_weight ? panel_layout(p.input(1).dtype) : nullptr;
}

template <bool pairs>
std::int64_t workspace(const Region& region, int) {
  const Problem& p = region.problem();
  const bool grouped = p.op->kind == OpKind::grouped_linear;
  const std::int64_t rows = grouped ? max_rows(p, 0) : std::min(packed_row_limit, max_rows(p, 0)), packed = rows * round_up(p.size(0, -1), 2) * (pairs ? 2 : 4);
  return (grouped ? group_workspace_bytes(p.size(1, 0)) : 0) + round_up(packed, 64) + Prologue::workspace(region, rows);
}

template <bool pairs>
Launcher bind_linear(const Region& region) {
  return [binding = ProductBinding(region)](const LaunchArgs& args) { HWY_DYNAMIC_DISPATCH(linear_packed)(args, binding, pairs); };
}

template <bool pairs>
Launcher bind_dual_linear(const Region& region) {
  return [binding = ProductBinding(region)](const LaunchArgs& args) { HWY_DYNAMIC_DISPATCH(dual_linear_packed)(args, binding, pairs); };
}

template <bool pairs>
Launcher bind_grouped_linear(const Region& region) {
  return [binding = ProductBinding(region)](const LaunchArgs& args) { HWY_DYNAMIC_DISPATCH(grouped_linear_packed)(args, binding, pairs); };
}

double cost(const Region& region, const DeviceLimits& limits) { return roofline_seconds(region, limits.f32_operations_per_second, limits); }
/// Never dearer than float32: where they are slower, they run because CERMET_BF16_PRODUCTS asks for them.
double pairs_cost(const Region& region, const DeviceLimits& limits) {
  return roofline_seconds(region, std::max(1.0, bf16_ratio()) * limits.f32_operations_per_second, limits);
}

}  // namespace

extern const Kernel gemm_linear_bf16{
    .name = "gemm.linear.bf16",
    .op = OpKind::linear,
    .summary = "bf16 dot products over packed panels, where they are measured to be at least 1.5 times as fast as float32",
    .fuses = true,
    .declines = pairs_declines,
    .bind = bind_linear<true>,
    .weight_layout = weight_layout,
    .workspace = workspace<true>,
    .cost = pairs_cost,
};

extern const Kernel gemm_linear_packed{
    .name = "gemm.linear.packed",
    .op = OpKind::linear,
    .summary = "float32 products over packed panels; the same bits for any number of rows and threads",
    .fuses = true,
    .declines = declines,
    .bind = bind_linear<false>,
    .weight_layout = weight_layout,
    .workspace = workspace<false>,
    .cost = cost,
};

extern const Kernel gemm_dual_linear_bf16{
    .name = "gemm.dual_linear.bf16",
    .op = OpKind::dual_linear,
    .summary = "as gemm.dual_linear.packed, by bf16 dot products where gemm.linear.bf16 is taken",
    .fuses = true,
    .declines = pairs_declines,
    .bind = bind_dual_linear<true>,
    .weight_layout = weight_layout,
    .workspace = workspace<true>,
    .cost = pairs_cost,
};

extern const Kernel gemm_dual_linear_packed{
    .name = "gemm.dual_linear.packed",
    .op = OpKind::dual_linear,
    .summary = "both products of a tile over packed panels, then activation and product before the one store",
    .fuses = true,
    .declines = declines,
    .bind = bind_dual_linear<false>,
    .weight_layout = weight_layout,
    .workspace = workspace<false>,
    .cost = cost,
};

extern const Kernel gemm_grouped_linear_bf16{
    .name = "gemm.grouped_linear.bf16",
    .op = OpKind::grouped_linear,
    .summary = "as gemm.grouped_linear.packed, by bf16 dot products where gemm.linear.bf16 is taken",
    .fuses = true,
    .declines = pairs_declines,
    .bind = bind_grouped_linear<true>,
    .weight_layout = weight_layout,
    .workspace = workspace<true>,
    .cost = pairs_cost,
};

extern const Kernel gemm_grouped_linear_packed{
    .name = "gemm.grouped_linear.packed",
    .op = OpKind::grouped_linear,
    .summary = "packed panels of the groups that have rows, spread over threads together",
    .fuses = true,
    .declines = declines,
    .bind = bind_grouped_linear<false>,
    .weight_layout = weight_layout,
    .workspace = workspace<false>,
    .cost = cost,
};

}  // namespace cermet::cpu
#endif
