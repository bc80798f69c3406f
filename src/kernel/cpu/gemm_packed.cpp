// linear, dual_linear and grouped_linear over packed weights, for any number of rows: a single row streams the weights once,
// many rows work on panels that stay in the second-level cache.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/gemm_packed.cpp"
#include <hwy/foreach_target.h>

#include "kernel/cpu/activation-inl.hpp"
#include "kernel/cpu/gemm_tiles-inl.hpp"
#include "op/products.hpp"
#include "op/reference.hpp"

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {
namespace {

/// Packed rows and what multiplies them.
struct Product {
  DType weight_type;
  std::int64_t columns;     ///< N
  std::int64_t units;       ///< of a panel
  std::int64_t length;      ///< K, padded to a whole unit of any layout: floats of a packed row
  std::int64_t panel_step;  ///< bytes from one panel to the next
  float* packed_rows;       ///< block of rows [begin, end) at (begin - first_row) * length
  std::int64_t first_row;
  std::int64_t panels() const { return panel_count(columns); }
  float* packed(std::int64_t row) const { return packed_rows + (row - first_row) * length; }
};

Product make_product(DType weight_type, std::int64_t columns, std::int64_t reduction, std::byte* workspace, std::int64_t first_row) {
  return {.weight_type = weight_type,
          .columns = columns,
          .units = div_up(reduction, panel_unit(weight_type)),
          .length = round_up(reduction, 2),
          .panel_step = panel_bytes(weight_type, reduction),
          .packed_rows = reinterpret_cast<float*>(workspace),
          .first_row = first_row};
}

/// tile[r][c] of rows [first, first + rows) and one panel of `weights`.
void multiply_tile(const Product& p, const void* weights, std::int64_t first, std::int64_t rows, std::int64_t panel, float* tile) {
  const std::byte* const at = static_cast<const std::byte*>(weights) + panel * p.panel_step;
  by_real_dtype(p.weight_type, [&](auto zero) { multiply_panel_of<decltype(zero)>(rows)(p.packed(first), at, p.units, tile); });
}

void pack_rows(const TensorView& x, const RowBlocks& blocks, const Product& p, ThreadPool& pool) {
  const Rows rows(x);
  for_blocks(blocks, (blocks.last - blocks.first) * p.length, pool,
             [&](std::int64_t first, std::int64_t last) { pack_block(rows, x.dtype, first, last, p.length, p.packed(first)); });
}

/// gate = activation(gate + gate_bias) * (up + up_bias), in place.
void combine_tiles(float* gate, const float* up, std::int64_t rows, Activation activation, const float* gate_bias, const float* up_bias) {
  for (std::int64_t i = 0; i < rows * panel_columns; i += static_cast<std::int64_t>(lanes())) {
    const std::int64_t c = i % panel_columns;
    const Real activated = activate(activation, Real(hn::Add(load(gate + i), load(gate_bias + c))));
    store(hn::Mul(activated.v, hn::Add(load(up + i), load(up_bias + c))), gate + i);
  }
}

/// Packs rows of x, at most packed_row_limit at a time, and calls tile(product, first_row, rows, panel) over the whole result.
template <class TileBody>
void for_product(const LaunchArgs& args, const TensorView& w, std::int64_t weights, TileBody&& body) {
  const TensorView& x = args.inputs[0];
  const std::int64_t rows = Rows(args.outputs[0]).count();
  for (std::int64_t first = 0; first < rows; first += packed_row_limit) {
    const RowBlocks blocks{first, std::min(rows, first + packed_row_limit)};
    const Product product = make_product(w.dtype, w.shape[0], w.shape[1], args.workspace, first);
    pack_rows(x, blocks, product, *args.pool);
    for_tiles(blocks, product.panels(), product.panel_step * weights, *args.pool,
              [&](std::int64_t at, std::int64_t count, std::int64_t panel) { body(product, at, count, panel); });
  }
}

}  // namespace

void linear_packed(const LaunchArgs& args) {
  const TensorView bias = optional_input(args, 2), &y = args.outputs[0];
  if (y.elements() == 0) return;
  const Rows results(y);
  for_product(args, args.inputs[1], 1, [&](const Product& product, std::int64_t first, std::int64_t rows, std::int64_t panel) {
    alignas(64) Tile tile;
    multiply_tile(product, args.inputs[1].data, first, rows, panel, tile);
    store_tile(tile, rows, bias, results, y.dtype, first, panel);
  });
}

void dual_linear_packed(const LaunchArgs& args, Activation activation) {
  const TensorView gate_bias = optional_input(args, 3), up_bias = optional_input(args, 4), &y = args.outputs[0];
  if (y.elements() == 0) return;
  const Rows results(y);
  for_product(args, args.inputs[1], 2, [&](const Product& product, std::int64_t first, std::int64_t rows, std::int64_t panel) {
    alignas(64) Tile gate, up;
    alignas(64) float biases[2][panel_columns] = {};
    const std::int64_t column = panel * panel_columns, count = std::min(panel_columns, product.columns - column);
    multiply_tile(product, args.inputs[1].data, first, rows, panel, gate);
    multiply_tile(product, args.inputs[2].data, first, rows, panel, up);
    load_wide(gate_bias, column, count, biases[0]);
    load_wide(up_bias, column, count, biases[1]);
    combine_tiles(gate, up, rows, activation, biases[0], biases[1]);
    store_tile(gate, rows, TensorView(), results, y.dtype, first, panel);
  });
}

void grouped_linear_packed(const LaunchArgs& args) {
  const TensorView &x = args.inputs[0], &w = args.inputs[1], &y = args.outputs[0];
  const Groups groups(args.inputs[2], x.shape[0], args.workspace);
  if (y.elements() == 0) return;
  const Product product = make_product(w.dtype, w.shape[1], w.shape[2], args.workspace + group_workspace_bytes(w.shape[0]), 0);
  const std::int64_t matrix_step = round_up(product.panels() * product.panel_step, 64);
  const Rows results(y);
  for (std::int64_t i = 0; i < groups.active_count; ++i) pack_rows(x, groups.rows(groups.active[i]), product, *args.pool);
  for_groups(groups, product.panels(), product.panel_step, *args.pool, [&](std::int64_t e, std::int64_t first, std::int64_t rows, std::int64_t panel) {
    alignas(64) Tile tile;
    multiply_tile(product, w.as<const std::byte>() + e * matrix_step, first, rows, panel, tile);
    store_tile(tile, rows, optional_row(args, 3, e), results, y.dtype, first, panel);
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

Decline declines(const Problem& p) {
  if (!dtypes::real.contains(p.input(0).dtype)) return fmt::format("x is {}, not a real type", name_of(p.input(0).dtype));
  if (!p.is_constant(1) || (p.op->kind == OpKind::dual_linear && !p.is_constant(2))) return "weight is not constant, so it cannot be prepacked";
  return std::nullopt;
}

const WeightLayout* weight_layout(const Problem& p, std::size_t operand) {
  const bool is_weight = operand == 1 || (operand == 2 && p.op->kind == OpKind::dual_linear);
  return is_weight ? panel_layout(p.input(1).dtype) : nullptr;
}

std::int64_t packed_rows_bytes(const Problem& p, std::int64_t rows) { return rows * round_up(p.size(0, -1), 2) * static_cast<std::int64_t>(sizeof(float)); }
std::int64_t workspace(const Problem& p, int) { return packed_rows_bytes(p, std::min(packed_row_limit, max_rows(p, 0))); }

}  // namespace

extern const Kernel gemm_linear_packed{
    .name = "gemm.linear.packed",
    .op = OpKind::linear,
    .summary = "float32 products over packed panels; the same bits for any number of rows and threads",
    .declines = declines,
    .bind = [](const Problem&) -> Launcher {
      return [](const LaunchArgs& args) {
        HWY_DYNAMIC_DISPATCH(linear_packed)
        (args);
      };
    },
    .weight_layout = weight_layout,
    .workspace = workspace,
};

extern const Kernel gemm_dual_linear_packed{
    .name = "gemm.dual_linear.packed",
    .op = OpKind::dual_linear,
    .summary = "both products of a tile over packed panels, then activation and product before the one store",
    .declines = declines,
    .bind = [](const Problem& p) -> Launcher {
      return [activation = activation_from_name(p.attributes.text("activation"))](const LaunchArgs& args) {
        HWY_DYNAMIC_DISPATCH(dual_linear_packed)(args, activation);
      };
    },
    .weight_layout = weight_layout,
    .workspace = workspace,
};

extern const Kernel gemm_grouped_linear_packed{
    .name = "gemm.grouped_linear.packed",
    .op = OpKind::grouped_linear,
    .summary = "packed panels of the groups that have rows, spread over threads together",
    .declines = declines,
    .bind = [](const Problem&) -> Launcher {
      return [](const LaunchArgs& args) {
        HWY_DYNAMIC_DISPATCH(grouped_linear_packed)
        (args);
      };
    },
    .weight_layout = weight_layout,
    .workspace = [](const Problem& p,
                    int) { return round_up(p.size(1, 0) * static_cast<std::int64_t>(sizeof(std::int64_t)), 64) + packed_rows_bytes(p, max_rows(p, 0)); },
};

}  // namespace cermet::cpu
#endif
