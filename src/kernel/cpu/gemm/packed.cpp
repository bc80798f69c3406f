// linear, dual_linear and grouped_linear over packed weights: one row streams them once, many work on panels that stay in the second-level cache.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/gemm/packed.cpp"
#include <hwy/foreach_target.h>

#include "kernel/cpu/gemm/bf16.hpp"
#include "kernel/cpu/gemm/for_product-inl.hpp"
#include "kernel/cpu/limits.hpp"
#include "kernel/roofline.hpp"
#include "op/products.hpp"

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {
namespace {

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
  binding.norm.run(args);
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
  for_groups(groups, panels, panel_step, *args.pool, binding.cut, [&](std::int64_t e, const BlockGroup& group, std::int64_t panel) {
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
Launcher bind_linear(const Region& region, const Config& config) {
  return [binding = ProductBinding(region, config)](const LaunchArgs& args) { HWY_DYNAMIC_DISPATCH(linear_packed)(args, binding, pairs); };
}

template <bool pairs>
Launcher bind_dual_linear(const Region& region, const Config& config) {
  return [binding = ProductBinding(region, config)](const LaunchArgs& args) { HWY_DYNAMIC_DISPATCH(dual_linear_packed)(args, binding, pairs); };
}

template <bool pairs>
Launcher bind_grouped_linear(const Region& region, const Config& config) {
  return [binding = ProductBinding(region, config)](const LaunchArgs& args) { HWY_DYNAMIC_DISPATCH(grouped_linear_packed)(args, binding, pairs); };
}

ConfigSpace space(const Region& region) { return ProductCut::space(region, region.problem().op->kind != OpKind::grouped_linear); }

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
    .space = space,
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
    .space = space,
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
    .space = space,
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
    .space = space,
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
    .space = space,
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
    .space = space,
    .cost = cost,
};

}  // namespace cermet::cpu
#endif
