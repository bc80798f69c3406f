// scaled_mm and quantized grouped_linear over packed panels. int8: byte dot products where the machine has them, else
// float32 products in chunks that are short enough to be exact. fp8: float32 products of panels that were decoded when
// they were packed.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/gemm/scaled.cpp"
#include <hwy/foreach_target.h>

#include "kernel/cpu/gemm/deep_product-inl.hpp"
#include "kernel/cpu/gemm/scaled_sums-inl.hpp"
#include "kernel/cpu/isa.hpp"

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {
namespace {

/// Runs what follows the sums of block i of a group; `more`: those of the second half of the columns, where a gate
/// takes both; with `same_scales` in place of those that were made for its rows.
void finish_quantized(const ScaledPlan& plan, const ScaledProduct& p, const ScaledWeight& w, const TileRun& epilogue,
                      const BlockGroup& group, std::int64_t i, std::int64_t panel, std::int64_t of_group,
                      const float* sums, const float* more = nullptr, const float* same_scales = nullptr) {
  const std::int64_t column = panel * panel_columns;
  const std::byte* const column_sums =
      w.panels + panel * p.panel_step +
      panel_element_bytes(p.type, p.length);  // only int8 has zero points, which read them
  for (std::int64_t r = 0; r < group.rows(i); r += epilogue_rows) {
    const std::int64_t row = group.first(i) + r;
    TileOperand inputs[] = {
        {sums + r * panel_columns, panel_columns, 1}, {reinterpret_cast<const float*>(column_sums), 0, 1}, {}};
    if (more) inputs[1] = {more + r * panel_columns, panel_columns, 1};
    if (same_scales || p.row_scales) {
      constexpr std::size_t repeated = TileOperand::repeated;
      inputs[plan.scale_input] = {
          same_scales ? same_scales : p.row_scales + static_cast<std::size_t>(row - p.first_row) * repeated, repeated,
          0};
    }
    epilogue(inputs, {row, std::min(epilogue_rows, group.rows(i) - r), column,
                      std::min(panel_columns, p.columns - column), of_group});
  }
}

/// Of stacked weights.
void compute_gate(const ScaledPlan& plan, const ScaledProduct& p, const ScaledWeight& w, const TileRun& epilogue,
                  const BlockGroup& group, std::int64_t panel, std::int64_t of_group) {
  const std::int64_t other = panel + plan.panels(p.columns);
  if (p.form == RowForm::chunks && !p.blocked)
    return multiply_panels(p.of_tiles(), std::array{w.panels + panel * p.panel_step, w.panels + other * p.panel_step},
                           group, [&](std::int64_t i, auto&& tile) {
                             finish_quantized(plan, p, w, epilogue, group, i, panel, of_group, tile(0), tile(1));
                           });
  std::optional<AmxTiles> registers;
  if (p.form == RowForm::chunks) registers.emplace();
  for (std::int64_t i = 0; i < group.count; ++i) {
    alignas(64) Tile gates, ups;
    multiply_tile(p, w, group.first(i), group.rows(i), panel, gates);
    multiply_tile(p, w, group.first(i), group.rows(i), other, ups);
    finish_quantized(plan, p, w, epilogue, group, i, panel, of_group, gates, ups);
  }
}

void compute_tiles(const ScaledPlan& plan, const ScaledProduct& p, const ScaledWeight& w, const TileRun& epilogue,
                   const BlockGroup& group, std::int64_t panel, std::int64_t of_group) {
  if (plan.binding.gated) return compute_gate(plan, p, w, epilogue, group, panel, of_group);
  if (p.form == RowForm::chunks && !p.blocked)
    return multiply_panels(p.of_tiles(), std::array{w.panels + panel * p.panel_step}, group,
                           [&](std::int64_t i, auto&& tile) {
                             finish_quantized(plan, p, w, epilogue, group, i, panel, of_group, tile(0));
                           });
  std::optional<AmxTiles> registers;
  if (p.form == RowForm::chunks) registers.emplace();
  for (std::int64_t i = 0; i < group.count; ++i) {
    alignas(64) Tile sums;
    multiply_tile(p, w, group.first(i), group.rows(i), panel, sums);
    finish_quantized(plan, p, w, epilogue, group, i, panel, of_group, sums);
  }
}

/// Rows that have no weight: their scales were not made either, nor any where no row has one.
void finish_unweighted(const ScaledPlan& plan, const ScaledProduct& product, const ScaledWeight& w,
                       const TileRun& epilogue, const Groups& groups, ThreadPool& pool) {
  static constexpr std::size_t values = static_cast<std::size_t>(epilogue_rows) * TileOperand::repeated;
  alignas(64) static constexpr float no_scales[values]{};
  const float* const scales = plan.makes_scales && !plan.blocked() ? no_scales : nullptr;
  for_unweighted_rows(groups, plan.panels(product.columns), pool,
                      [&](const BlockGroup& group, std::int64_t i, std::int64_t panel, const float* sums) {
                        finish_quantized(plan, product, w, epilogue, group, i, panel, 0, sums,
                                         plan.binding.gated ? sums : nullptr, scales);
                      });
}

}  // namespace

void scaled_mm_packed(const LaunchArgs& args, const ScaledPlan& plan) {
  const TensorView a = plan.binding.operands(args, 0), b = plan.binding.operands(args, 1),
                   &y = args.outputs[plan.binding.result];
  if (y.elements() == 0) return;
  const std::int64_t rows = Rows(y).count();
  const TileRun epilogue(plan.binding.epilogue, args);
  const bool deep =
      !plan.blocked() && !plan.binding.gated && is_deep(plan.form, rows, padded_quantized(plan.form, b.shape[1]));
  ScaledProduct p(plan, args, b, args.workspace + (deep ? deep_product_bytes(args.pool->size()) : 0));
  ScaledWeight w{b.as<const std::byte>(), ColumnScales(plan.binding.operands(args, plan.right_scale), plan.right)};
  if (plan.repack) {
    plan.repack->pack(b, p.packed_rows, *args.pool);
    w.panels = p.packed_rows;
    p.packed_rows += round_up(panels_bytes(b.dtype, b.shape[0], b.shape[1]), 64);
  }
  for (; p.first_row < rows; p.first_row += packed_row_limit) {
    const RowBlocks blocks{p.first_row, std::min(rows, p.first_row + packed_row_limit), plan.form};
    if (plan.binding.prologue) pack_made_rows(args, plan, blocks, blocks.last - blocks.first, p);
    else pack_rows(a, blocks, p, *args.pool);
    if (deep)
      for_deep_product(p.of_tiles(), w.panels, panel_count(p.columns), blocks, *args.pool, args.workspace,
                       [&](const BlockGroup& block, std::int64_t panel, const float* sums) {
                         finish_quantized(plan, p, w, epilogue, block, 0, panel, 0, sums);
                       });
    else
      for_tiles(
          blocks, plan.panels(p.columns), p.panel_step, *args.pool, plan.binding.cut,
          [&](const BlockGroup& group, std::int64_t panel) { compute_tiles(plan, p, w, epilogue, group, panel, 0); });
  }
}

void grouped_linear_scaled(const LaunchArgs& args, const ScaledPlan& plan) {
  const TensorView x = plan.binding.operands(args, 0), w = plan.binding.operands(args, 1),
                   offsets = plan.binding.operands(args, 2);
  const std::int64_t count = args.outputs[plan.binding.result].shape[0];
  const Groups groups(offsets, w.shape[0], count, args.workspace, plan.form);
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
  for_groups(groups, plan.panels(p.columns), p.panel_step, *args.pool, plan.binding.cut,
             [&](std::int64_t e, const BlockGroup& group, std::int64_t panel) {
               const ScaledWeight weight{matrices + e * matrix_step, ColumnScales(slice_of(scales, e), plan.right)};
               compute_tiles(plan, p, weight, epilogue, group, panel, e);
             });
  finish_unweighted(plan, p, {matrices, ColumnScales(TensorView(), plan.right)}, epilogue, groups, *args.pool);
}

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cermet::cpu {
namespace {

HWY_EXPORT(scaled_mm_packed);
HWY_EXPORT(grouped_linear_scaled);

/// How products that do not go by tiles pack their rows.
RowForm vector_form(const Problem& p) {
  return p.input(1).dtype == DType::i8 && active_isa() >= Isa::avx512_vnni ? RowForm::units : RowForm::wide;
}

const WeightLayout* repacked_layout(const Problem& p) {
  return p.is_constant(1) ? nullptr : panel_layout(p.input(1).dtype);
}

/// `left` and `right` number the operands that are scales.
ScaledPlan plan_of(const Region& region, const Config& config, std::size_t left, std::size_t right, RowForm form) {
  const Problem& p = region.problem();
  ScaledPlan plan{ProductBinding(region, config), left, right, {}, {}, form, repacked_layout(p)};
  plan.makes_scales = region.nodes[static_cast<std::size_t>(region.anchor)].inputs[left].is_inside();
  plan.scale_input = product_epilogue(region, product_loops(region)).program.inputs.size() - 1;
  const Dims &rows = p.input(0).dims, &weight = p.input(1).dims;
  if (p.has(left)) plan.left = *row_scale_grid(p.input(left).dims, {rows.begin(), rows.end() - 1}, rows.back());
  if (p.has(right)) {
    const Dims& scale = p.input(right).dims;
    plan.right =
        weight.size() == 3 ? *stacked_scale_grid(scale, weight) : *column_scale_grid(scale, weight[0], weight[1]);
  }
  return plan;
}

/// Packed rows, and the panels of a weight that is packed in every run.
std::int64_t product_workspace(const Problem& p, std::int64_t rows, RowForm form) {
  const std::int64_t overread = form == RowForm::chunks ? amx_overread : 0;
  const std::int64_t bytes = rows * padded_quantized(form, p.size(0, -1)) *
                                 (form == RowForm::wide ? static_cast<std::int64_t>(sizeof(float)) : 1) +
                             overread;
  if (p.is_constant(1)) return bytes;
  return bytes + max_rows(p, 1, 2) * round_up(panels_bytes(p.input(1).dtype, p.size(1, -2), p.size(1, -1)), 64);
}

std::int64_t workspace_of(const Region& region, std::int64_t rows, RowForm form) {
  const Problem& p = region.problem();
  const std::int64_t packed = product_workspace(p, rows, form);
  if (region.anchor == 0) return packed;
  const std::int64_t scales = std::max<std::int64_t>(TileOperand::repeated, div_up(p.size(0, -1), scale_block));
  return round_up(packed, 64) + Prologue::workspace(region, rows) +
         rows * scales * static_cast<std::int64_t>(sizeof(float));
}

const WeightLayout* weight_layout(const Region& region, std::size_t operand) {
  const Problem& p = region.problem();
  return region.operand_of(1) == operand && p.is_constant(1) ? panel_layout(p.input(1).dtype) : nullptr;
}

/// Why int8 products do not go by tiles. A single row takes as long as reading the weight, which dot products wait for
/// a little less.
Decline tiles_decline(const Region& region) {
  const DType type = region.problem().input(1).dtype;
  if (max_rows(region.problem(), 0) <= 1) return "there is one row";
  return type == DType::i8 ? amx_decline(type) : Decline(fmt::format("b is {}, not i8", name_of(type)));
}

Kernel scaled_mm_kernel(std::string name, bool tiles, std::string summary) {
  const auto form = [tiles](const Region& region) { return tiles ? RowForm::chunks : vector_form(region.problem()); };
  return {
      .name = std::move(name),
      .op = OpKind::scaled_mm,
      .summary = std::move(summary),
      .fuses = true,
      .declines = [tiles](const Region& region) -> Decline {
        if (Decline reason = tiles ? tiles_decline(region) : std::nullopt) return reason;
        return ProductBinding::declines_around(region);
      },
      .bind = [form](const Region& region, const Config& config) -> Launcher {
        return [plan = plan_of(region, config, 2, 3, form(region))](const LaunchArgs& args) {
          HWY_DYNAMIC_DISPATCH(scaled_mm_packed)(args, plan);
        };
      },
      .weight_layout = weight_layout,
      .workspace =
          [form](const Region& region, int threads) {
            const std::int64_t rows = std::min(packed_row_limit, max_rows(region.problem(), 0));
            const bool deep = is_deep(form(region), rows, padded_quantized(form(region), region.problem().size(0, -1)));
            return workspace_of(region, rows, form(region)) + (deep ? deep_product_bytes(threads) : 0);
          },
      .space = [tiles](const Region& region) { return tiles ? ConfigSpace() : ProductCut::space(region, false); },
      .cut = ProductBinding::gate_cut,
  };
}

Kernel grouped_linear_kernel(std::string name, bool tiles, std::string summary) {
  const auto form = [tiles](const Region& region) { return tiles ? RowForm::chunks : vector_form(region.problem()); };
  return {
      .name = std::move(name),
      .op = OpKind::grouped_linear,
      .summary = std::move(summary),
      .fuses = true,
      .declines = [tiles](const Region& region) -> Decline {
        if (dtypes::real.contains(region.problem().input(0).dtype)) return "x is not quantized";
        if (Decline reason = tiles ? tiles_decline(region) : std::nullopt) return reason;
        return ProductBinding::declines_around(region);
      },
      .bind = [form](const Region& region, const Config& config) -> Launcher {
        return [plan = plan_of(region, config, 4, 5, form(region))](const LaunchArgs& args) {
          HWY_DYNAMIC_DISPATCH(grouped_linear_scaled)(args, plan);
        };
      },
      .weight_layout = weight_layout,
      .workspace =
          [form](const Region& region, int) {
            const Problem& p = region.problem();
            return group_workspace_bytes(p.size(1, 0)) + workspace_of(region, max_rows(p, 0), form(region));
          },
      .space = [tiles](const Region& region) { return tiles ? ConfigSpace() : ProductCut::space(region, false); },
      .cut = ProductBinding::gate_cut,
  };
}

}  // namespace

extern const Kernel gemm_scaled_mm_amx =
    scaled_mm_kernel("gemm.scaled_mm.amx", true, "as gemm.scaled_mm.packed, int8 by AMX tiles: the same bits");
extern const Kernel gemm_scaled_mm_packed =
    scaled_mm_kernel("gemm.scaled_mm.packed", false,
                     "int8 by byte dot products or exact float32, fp8 as bf16, over packed panels; a weight that is "
                     "not constant is packed in every run");
extern const Kernel gemm_grouped_linear_scaled_amx = grouped_linear_kernel(
    "gemm.grouped_linear.scaled_amx", true, "as gemm.scaled_mm.amx, for the groups that have rows");
extern const Kernel gemm_grouped_linear_scaled = grouped_linear_kernel(
    "gemm.grouped_linear.scaled", false, "as gemm.scaled_mm.packed, for the groups that have rows");

}  // namespace cermet::cpu
#endif
