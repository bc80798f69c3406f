// scaled_mm and quantized grouped_linear over packed panels. int8: byte dot products where the machine has them, else float32 products in chunks that are
// short enough to be exact. fp8: float32 products of panels that were decoded when they were packed.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/gemm/scaled.cpp"
#include <hwy/foreach_target.h>

#include "kernel/cpu/gemm/scaled_sums-inl.hpp"
#include "kernel/cpu/isa.hpp"

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {
namespace {

void compute_tiles(const ScaledPlan& plan, const ScaledProduct& p, const ScaledWeight& w, const TileRun& epilogue, const BlockGroup& group, std::int64_t panel,
                   std::int64_t of_group) {
  const std::int64_t column = panel * panel_columns;
  for (std::int64_t i = 0; i < group.count; ++i) {
    alignas(64) Tile sums;
    multiply_tile(p, w, group.first(i), group.rows(i), panel, sums);
    const std::byte* const column_sums = w.panels + panel * p.panel_step + panel_element_bytes(p.type, p.length);  // only int8 has zero points, which read them
    TileOperand inputs[] = {{sums, panel_columns, 1}, {reinterpret_cast<const float*>(column_sums), 0, 1}, {}};
    if (p.row_scales) {
      constexpr std::size_t repeated = TileOperand::repeated;
      inputs[plan.scale_input] = {p.row_scales + static_cast<std::size_t>(group.first(i) - p.first_row) * repeated, repeated, 0};
    }
    epilogue(inputs, {group.first(i), group.rows(i), column, std::min(panel_columns, p.columns - column), of_group});
  }
}

}  // namespace

void scaled_mm_packed(const LaunchArgs& args, const ScaledPlan& plan) {
  const TensorView a = plan.binding.operands(args, 0), b = plan.binding.operands(args, 1), &y = args.outputs[plan.binding.result];
  if (y.elements() == 0) return;
  const std::int64_t rows = Rows(y).count();
  const TileRun epilogue(plan.binding.epilogue, args);
  ScaledProduct p(plan, args, b, args.workspace);
  ScaledWeight w{b.as<const std::byte>(), ColumnScales(plan.binding.operands(args, plan.right_scale), plan.right)};
  if (plan.repack) {
    plan.repack->pack(b, p.packed_rows, *args.pool);
    w.panels = p.packed_rows;
    p.packed_rows += round_up(panels_bytes(b.dtype, b.shape[0], b.shape[1]), 64);
  }
  for (; p.first_row < rows; p.first_row += packed_row_limit) {
    const RowBlocks blocks{p.first_row, std::min(rows, p.first_row + packed_row_limit)};
    if (plan.binding.prologue) pack_made_rows(args, plan, blocks, blocks.last - blocks.first, p);
    else pack_rows(a, blocks, p, *args.pool);
    for_tiles(blocks, panel_count(p.columns), p.panel_step, *args.pool, plan.binding.cut,
              [&](const BlockGroup& group, std::int64_t panel) { compute_tiles(plan, p, w, epilogue, group, panel, 0); });
  }
}

void grouped_linear_scaled(const LaunchArgs& args, const ScaledPlan& plan) {
  const TensorView x = plan.binding.operands(args, 0), w = plan.binding.operands(args, 1), offsets = plan.binding.operands(args, 2);
  const std::int64_t count = args.outputs[plan.binding.result].shape[0];
  const Groups groups(offsets, count, args.workspace);
  if (args.outputs[plan.binding.result].elements() == 0) return;
  const TileRun epilogue(plan.binding.epilogue, args);
  ScaledProduct p(plan, args, w, args.workspace + group_workspace_bytes(w.shape[0]));
  const std::int64_t matrix_step = round_up(panels_bytes(w.dtype, p.columns, p.length), 64);
  const std::byte* matrices = w.as<const std::byte>();
  if (plan.repack) {
    for (std::int64_t i = 0; i < groups.active_count; ++i) {
      const std::int64_t e = groups.active[i];
      plan.repack->pack(slice_of(w, e), p.packed_rows + e * matrix_step, *args.pool);
    }
    matrices = p.packed_rows;
    p.packed_rows += w.shape[0] * matrix_step;
  }
  for (std::int64_t i = 0; i < groups.active_count; ++i) {
    const RowBlocks blocks = groups.rows(groups.active[i]);
    if (plan.binding.prologue) pack_made_rows(args, plan, blocks, count, p);
    else pack_rows(x, blocks, p, *args.pool);
  }
  const TensorView scales = plan.binding.operands(args, plan.right_scale);
  for_groups(groups, panel_count(p.columns), p.panel_step, *args.pool, plan.binding.cut, [&](std::int64_t e, const BlockGroup& group, std::int64_t panel) {
    const ScaledWeight weight{matrices + e * matrix_step, ColumnScales(slice_of(scales, e), plan.right)};
    compute_tiles(plan, p, weight, epilogue, group, panel, e);
  });
}

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cermet::cpu {
namespace {

HWY_EXPORT(scaled_mm_packed);
HWY_EXPORT(grouped_linear_scaled);

bool byte_products(const Problem& p) { return p.input(1).dtype == DType::i8 && active_isa() >= Isa::avx512_vnni; }

const WeightLayout* repacked_layout(const Problem& p) { return p.is_constant(1) ? nullptr : panel_layout(p.input(1).dtype); }

/// `left` and `right` number the operands that are scales.
ScaledPlan plan_of(const Region& region, const Config& config, std::size_t left, std::size_t right) {
  const Problem& p = region.problem();
  ScaledPlan plan{ProductBinding(region, config), left, right, {}, {}, byte_products(p), repacked_layout(p)};
  plan.makes_scales = region.nodes[static_cast<std::size_t>(region.anchor)].inputs[left].is_inside();
  plan.scale_input = product_epilogue(region, product_loops).program.inputs.size() - 1;
  const Dims &rows = p.input(0).dims, &weight = p.input(1).dims;
  if (p.has(left)) plan.left = *row_scale_grid(p.input(left).dims, {rows.begin(), rows.end() - 1}, rows.back());
  if (p.has(right)) {
    const Dims& scale = p.input(right).dims;
    plan.right = weight.size() == 3 ? *stacked_scale_grid(scale, weight) : *column_scale_grid(scale, weight[0], weight[1]);
  }
  return plan;
}

/// Packed rows, and the panels of a weight that is packed in every run.
std::int64_t product_workspace(const Problem& p, std::int64_t rows) {
  const std::int64_t bytes = rows * round_up(p.size(0, -1), 4) * (byte_products(p) ? 1 : static_cast<std::int64_t>(sizeof(float)));
  if (p.is_constant(1)) return bytes;
  return bytes + max_rows(p, 1, 2) * round_up(panels_bytes(p.input(1).dtype, p.size(1, -2), p.size(1, -1)), 64);
}

std::int64_t workspace_of(const Region& region, std::int64_t rows) {
  const Problem& p = region.problem();
  const std::int64_t packed = product_workspace(p, rows);
  if (region.anchor == 0) return packed;
  const std::int64_t scales = std::max<std::int64_t>(TileOperand::repeated, div_up(p.size(0, -1), scale_block));
  return round_up(packed, 64) + Prologue::workspace(region, rows) + rows * scales * static_cast<std::int64_t>(sizeof(float));
}

const WeightLayout* weight_layout(const Region& region, std::size_t operand) {
  const Problem& p = region.problem();
  return region.operand_of(1) == operand && p.is_constant(1) ? panel_layout(p.input(1).dtype) : nullptr;
}

}  // namespace

extern const Kernel gemm_scaled_mm_packed{
    .name = "gemm.scaled_mm.packed",
    .op = OpKind::scaled_mm,
    .summary = "int8 by byte dot products or exact float32, fp8 as bf16, over packed panels; a weight that is not constant is packed in every run",
    .fuses = true,
    .declines = ProductBinding::declines_around,
    .bind = [](const Region& region, const Config& config) -> Launcher {
      return [plan = plan_of(region, config, 2, 3)](const LaunchArgs& args) { HWY_DYNAMIC_DISPATCH(scaled_mm_packed)(args, plan); };
    },
    .weight_layout = weight_layout,
    .workspace = [](const Region& region, int) { return workspace_of(region, std::min(packed_row_limit, max_rows(region.problem(), 0))); },
    .space = [](const Region& region) { return ProductCut::space(region, false); },
};

extern const Kernel gemm_grouped_linear_scaled{
    .name = "gemm.grouped_linear.scaled",
    .op = OpKind::grouped_linear,
    .summary = "as gemm.scaled_mm.packed, for the groups that have rows",
    .fuses = true,
    .declines = [](const Region& region) -> Decline {
      if (dtypes::real.contains(region.problem().input(0).dtype)) return "x is not quantized";
      return ProductBinding::declines_around(region);
    },
    .bind = [](const Region& region, const Config& config) -> Launcher {
      return [plan = plan_of(region, config, 4, 5)](const LaunchArgs& args) { HWY_DYNAMIC_DISPATCH(grouped_linear_scaled)(args, plan); };
    },
    .weight_layout = weight_layout,
    .workspace =
        [](const Region& region, int) {
          const Problem& p = region.problem();
          return group_workspace_bytes(p.size(1, 0)) + workspace_of(region, max_rows(p, 0));
        },
    .space = [](const Region& region) { return ProductCut::space(region, false); },
};

}  // namespace cermet::cpu
#endif
