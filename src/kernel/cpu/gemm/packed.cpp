// linear, dual_linear and grouped_linear over packed weights: one row streams them once, many work on panels that stay
// in the second-level cache.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/gemm/packed.cpp"
#include <hwy/foreach_target.h>

#include "kernel/cpu/gemm/amx.hpp"
#include "kernel/cpu/gemm/bf16.hpp"
#include "kernel/cpu/gemm/deep_product-inl.hpp"
#include "kernel/cpu/gemm/for_product-inl.hpp"
#include "kernel/cpu/limits.hpp"
#include "kernel/roofline.hpp"
#include "op/products.hpp"

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {
namespace {

const std::byte* panel_at(const TensorView& w, std::int64_t panel) {
  return w.as<const std::byte>() + panel * panel_bytes(w.dtype, w.shape.back());
}

/// A linear whose rows do not stay in the second-level cache.
void linear_deep(const LaunchArgs& args, const ProductBinding& binding, const TensorView& w, const TileRun& epilogue) {
  const std::int64_t rows = Rows(args.outputs[binding.result]).count();
  for (std::int64_t first = 0; first < rows; first += packed_row_limit) {
    const RowBlocks blocks{first, std::min(rows, first + packed_row_limit), RowForm::chunks};
    const PackedProduct product =
        make_product(w, RowForm::chunks, args.workspace + deep_product_bytes(args.pool->size()), first);
    pack_blocks(args, binding, blocks, blocks.last - blocks.first, w.shape[1], product);
    for_deep_product(product, panel_at(w, 0), panel_count(w.shape[0]), blocks, *args.pool, args.workspace,
                     [&](const BlockGroup& block, std::int64_t panel, const float* sums) {
                       finish_block(epilogue, block, 0, panel, w.shape[0], sums);
                     });
  }
}

}  // namespace

void linear_packed(const LaunchArgs& args, const ProductBinding& binding, RowForm form) {
  const TensorView w = binding.operands(args, 1);
  if (args.outputs[binding.result].elements() == 0) return;
  const TileRun epilogue(binding.epilogue, args);
  if (is_deep(form, rows_of_thread(Rows(args.outputs[binding.result]).count(), form, args.pool->size()),
              packed_row_bytes(form, w.shape[1], 2)))
    linear_deep(args, binding, w, epilogue);
  else
    for_product(args, binding, w, 1, form,
                [&](const PackedProduct& product, const BlockGroup& group, std::int64_t panel) {
                  multiply_panels(product, std::array{panel_at(w, panel)}, group, [&](std::int64_t i, auto&& tile) {
                    finish_block(epilogue, group, i, panel, w.shape[0], tile(0));
                  });
                });
  binding.norm.run(args);
}

/// Also a linear of stacked weights whose halves a gate multiplies.
void dual_linear_packed(const LaunchArgs& args, const ProductBinding& binding, RowForm form) {
  TensorView gates = binding.operands(args, 1);
  const TensorView ups = binding.gated
                             ? ProductBinding::split_weight(
                                   gates, panel_count(gates.shape[0]) / 2 * panel_bytes(gates.dtype, gates.shape[1]))
                             : binding.operands(args, 2);
  if (args.outputs[binding.result].elements() == 0) return;
  const TileRun epilogue(binding.epilogue, args);
  for_product(args, binding, gates, 2, form,
              [&](const PackedProduct& product, const BlockGroup& group, std::int64_t panel) {
                multiply_panels(product, std::array{panel_at(gates, panel), panel_at(ups, panel)}, group,
                                [&](std::int64_t i, auto&& tile) {
                                  finish_block(epilogue, group, i, panel, gates.shape[0], tile(0), tile(1));
                                });
              });
  binding.norm.run(args);
}

void grouped_linear_packed(const LaunchArgs& args, const ProductBinding& binding, RowForm form) {
  const TensorView w = binding.operands(args, 1), offsets = binding.operands(args, 2);
  const std::int64_t count = args.outputs[binding.result].shape[0];
  const Groups groups(offsets, w.shape[0], count, args.workspace, form);
  if (args.outputs[binding.result].elements() == 0) return;
  const PackedProduct product = make_product(w, form, args.workspace + group_workspace_bytes(w.shape[0]), 0);
  const std::int64_t panels = panel_count(w.shape[1]), panel_step = panel_bytes(w.dtype, w.shape[2]),
                     matrix_step = round_up(panels * panel_step, 64);
  const TileRun epilogue(binding.epilogue, args);
  for (std::int64_t i = 0; i < groups.active_count; ++i)
    pack_blocks(args, binding, groups.rows(groups.active[i]), count, w.shape[2], product);
  if (binding.gated) {
    const std::int64_t half = panels / 2;
    for_groups(groups, half, 2 * panel_step, *args.pool, binding.cut,
               [&](std::int64_t e, const BlockGroup& group, std::int64_t panel) {
                 const std::byte* const gates = panel_at(w, panel) + e * matrix_step;
                 multiply_panels(product, std::array{gates, gates + half * panel_step}, group,
                                 [&](std::int64_t i, auto&& tile) {
                                   finish_block(epilogue, group, i, panel, w.shape[1] / 2, tile(0), tile(1), e);
                                 });
               });
    for_unweighted_rows(groups, half, *args.pool,
                        [&](const BlockGroup& group, std::int64_t i, std::int64_t panel, const float* sums) {
                          finish_block(epilogue, group, i, panel, w.shape[1] / 2, sums, sums);
                        });
    return;
  }
  for_groups(groups, panels, panel_step, *args.pool, binding.cut,
             [&](std::int64_t e, const BlockGroup& group, std::int64_t panel) {
               multiply_panels(product, std::array{panel_at(w, panel) + e * matrix_step}, group,
                               [&](std::int64_t i, auto&& tile) {
                                 finish_block(epilogue, group, i, panel, w.shape[1], tile(0), nullptr, e);
                               });
             });
  for_unweighted_rows(groups, panels, *args.pool,
                      [&](const BlockGroup& group, std::int64_t i, std::int64_t panel, const float* sums) {
                        finish_block(epilogue, group, i, panel, w.shape[1], sums);
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
  if (!dtypes::real.contains(p.input(0).dtype))
    return fmt::format("x is {}, not a real type", name_of(p.input(0).dtype));
  if (!p.is_constant(1) || (p.op->kind == OpKind::dual_linear && !p.is_constant(2)))
    return "weight is not constant, so it cannot be prepacked";
  return ProductBinding::declines_around(region);
}

/// Why a product of bf16 with bf16 does not go by the instruction that takes rows of this form.
Decline bf16_declines(const Region& region, RowForm form) {
  const Problem& p = region.problem();
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}})
    if (p.input(i).dtype != DType::bf16)
      return fmt::format("{} is {}, not bf16", p.input_name(i), name_of(p.input(i).dtype));
  if (Decline reason = declines(region)) return reason;
  return form == RowForm::chunks ? amx_decline(DType::bf16) : pairs_decline();
}

const WeightLayout* weight_layout(const Region& region, std::size_t operand) {
  const Problem& p = region.problem();
  const bool is_weight =
      region.operand_of(1) == operand || (p.op->kind == OpKind::dual_linear && region.operand_of(2) == operand);
  return is_weight ? panel_layout(p.input(1).dtype) : nullptr;
}

std::int64_t workspace(const Region& region, RowForm form, int threads) {
  const Problem& p = region.problem();
  const bool grouped = p.op->kind == OpKind::grouped_linear;
  const std::int64_t rows = grouped ? max_rows(p, 0) : std::min(packed_row_limit, max_rows(p, 0));
  const std::int64_t row_bytes = packed_row_bytes(form, p.size(0, -1), byte_size(DType::bf16));
  const bool deep = p.op->kind == OpKind::linear && !ProductBinding::is_gated(region) &&
                    is_deep(form, rows, row_bytes);  // also where threads share the rows: sizes are not known yet
  return (grouped ? group_workspace_bytes(p.size(1, 0)) : 0) + (deep ? deep_product_bytes(threads) : 0) +
         round_up(rows * row_bytes, 64) + Prologue::workspace(region, rows) +
         (form == RowForm::chunks ? amx_overread : 0);
}

/// Modelled by the rate of float32. bf16 is never dearer: where it is slower, it runs because the environment asks for
/// it.
double cost(const Region& region, RowForm form, const DeviceLimits& limits) {
  const double ratio =
      form == RowForm::wide ? 1 : std::max(1.0, form == RowForm::chunks ? amx_bf16_ratio() : bf16_ratio());
  return roofline_seconds(region, ratio * limits.f32_operations_per_second, limits) +
         ProductBinding::gate_seconds(region, limits);
}

Launcher bind_product(const Region& region, const Config& config, RowForm form) {
  switch (region.problem().op->kind) {
    case OpKind::linear:
      if (ProductBinding::is_gated(region))
        return [binding = ProductBinding(region, config), form](const LaunchArgs& args) {
          HWY_DYNAMIC_DISPATCH(dual_linear_packed)(args, binding, form);
        };
      return [binding = ProductBinding(region, config), form](const LaunchArgs& args) {
        HWY_DYNAMIC_DISPATCH(linear_packed)(args, binding, form);
      };
    case OpKind::dual_linear:
      return [binding = ProductBinding(region, config), form](const LaunchArgs& args) {
        HWY_DYNAMIC_DISPATCH(dual_linear_packed)(args, binding, form);
      };
    default:
      return [binding = ProductBinding(region, config), form](const LaunchArgs& args) {
        HWY_DYNAMIC_DISPATCH(grouped_linear_packed)(args, binding, form);
      };
  }
}

/// Tiles have one way to run.
ConfigSpace space(const Region& region, RowForm form) {
  return form == RowForm::chunks ? ConfigSpace()
                                 : ProductCut::space(region, region.problem().op->kind != OpKind::grouped_linear);
}

Kernel product_kernel(std::string name, OpKind op, RowForm form, std::string summary) {
  return {
      .name = std::move(name),
      .op = op,
      .summary = std::move(summary),
      .fuses = true,
      .declines =
          [form](const Region& region) {
            return form == RowForm::wide ? declines(region) : bf16_declines(region, form);
          },
      .bind = [form](const Region& region, const Config& config) { return bind_product(region, config, form); },
      .weight_layout = weight_layout,
      .workspace = [form](const Region& region, int threads) { return workspace(region, form, threads); },
      .space = [form](const Region& region) { return space(region, form); },
      .cost = [form](const Region& region, const DeviceLimits& limits) { return cost(region, form, limits); },
      .cut =
          [op](const Region& region) {
            return op == OpKind::grouped_linear ? ProductBinding::gate_cut(region) : RegionCut();
          },
  };
}

}  // namespace

extern const Kernel gemm_linear_amx = product_kernel("gemm.linear.amx", OpKind::linear, RowForm::chunks,
                                                     "bf16 products of AMX tiles over packed panels, where they are "
                                                     "measured to be at least 1.5 times as fast as vectors");
extern const Kernel gemm_linear_bf16 = product_kernel(
    "gemm.linear.bf16", OpKind::linear, RowForm::units,
    "bf16 dot products over packed panels, where they are measured to be at least 1.5 times as fast as float32");
extern const Kernel gemm_linear_packed =
    product_kernel("gemm.linear.packed", OpKind::linear, RowForm::wide,
                   "float32 products over packed panels; the same bits for any number of rows and threads");

extern const Kernel gemm_dual_linear_amx =
    product_kernel("gemm.dual_linear.amx", OpKind::dual_linear, RowForm::chunks,
                   "as gemm.dual_linear.packed, by AMX tiles where gemm.linear.amx is taken");
extern const Kernel gemm_dual_linear_bf16 =
    product_kernel("gemm.dual_linear.bf16", OpKind::dual_linear, RowForm::units,
                   "as gemm.dual_linear.packed, by bf16 dot products where gemm.linear.bf16 is taken");
extern const Kernel gemm_dual_linear_packed =
    product_kernel("gemm.dual_linear.packed", OpKind::dual_linear, RowForm::wide,
                   "both products of a tile over packed panels, then activation and product before the one store");

extern const Kernel gemm_grouped_linear_amx =
    product_kernel("gemm.grouped_linear.amx", OpKind::grouped_linear, RowForm::chunks,
                   "as gemm.grouped_linear.packed, by AMX tiles where gemm.linear.amx is taken");
extern const Kernel gemm_grouped_linear_bf16 =
    product_kernel("gemm.grouped_linear.bf16", OpKind::grouped_linear, RowForm::units,
                   "as gemm.grouped_linear.packed, by bf16 dot products where gemm.linear.bf16 is taken");
extern const Kernel gemm_grouped_linear_packed =
    product_kernel("gemm.grouped_linear.packed", OpKind::grouped_linear, RowForm::wide,
                   "packed panels of the groups that have rows, spread over threads together");

}  // namespace cermet::cpu
#endif
