// linear, dual_linear and grouped_linear over packed weights, for any number of rows: a single row streams the weights once,
// many rows work on panels that stay in the second-level cache.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/gemm_packed.cpp"
#include <hwy/foreach_target.h>

#include "kernel/cpu/activation-inl.hpp"
#include "kernel/cpu/gemm-inl.hpp"
#include "kernel/kernel.hpp"
#include "op/products.hpp"
#include "op/reference.hpp"

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {
namespace {

/// Packed rows and what multiplies them.
struct Product {
  DType weight_type;
  std::int64_t columns;      ///< N
  std::int64_t units;        ///< of a panel
  std::int64_t length;       ///< K, padded to a whole unit of any layout: floats of a packed row
  std::int64_t panel_step;   ///< bytes from one panel to the next
  const float* packed_rows;  ///< block of rows [begin, end) at begin * length
  std::int64_t panels() const { return panel_count(columns); }
};

Product make_product(const TensorView& w, std::int64_t columns, std::int64_t reduction, const float* packed_rows) {
  return {w.dtype, columns, div_up(reduction, panel_unit(w.dtype)), round_up(reduction, 2), panel_bytes(w.dtype, reduction), packed_rows};
}

/// How the result is cut into items that threads take one by one: a range of panels times a range of row blocks.
struct Items {
  std::int64_t panels, blocks;            ///< all of them
  std::int64_t item_panels, item_blocks;  ///< of one item; the last ones may have fewer
  std::int64_t panel_items() const { return div_up(panels, item_panels); }
  std::int64_t count() const { return panel_items() * div_up(blocks, item_blocks); }
};

/// Items whose panels take about a quarter of a megabyte, so that they stay in the second-level cache and a stream of them is long;
/// smaller where there would be fewer than four for each thread.
Items cut(std::int64_t panels, std::int64_t blocks, std::int64_t panel_step, int threads) {
  constexpr std::int64_t target_bytes = 256 << 10;
  const std::int64_t wanted = threads == 1 ? 1 : 4 * threads;
  Items items{panels, blocks, std::max<std::int64_t>(1, target_bytes / std::max<std::int64_t>(1, panel_step)), blocks};
  items.item_panels = std::min(items.item_panels, std::max<std::int64_t>(1, panels / wanted));
  if (items.count() < wanted) items.item_blocks = std::max<std::int64_t>(1, div_up(blocks, div_up(wanted, items.panel_items())));
  return items;
}

/// Calls tile(first_row, rows, panel) for every block of rows and panel of an item.
template <class Tile>
void for_tiles(const Items& items, std::int64_t item, const RowBlocks& blocks, Tile&& tile) {
  const std::int64_t first_panel = item % items.panel_items() * items.item_panels, last_panel = std::min(items.panels, first_panel + items.item_panels);
  const std::int64_t first_block = item / items.panel_items() * items.item_blocks, last_block = std::min(items.blocks, first_block + items.item_blocks);
  for (std::int64_t b = first_block; b < last_block; ++b)
    for (std::int64_t panel = first_panel; panel < last_panel; ++panel) tile(blocks.begin(b), blocks.begin(b + 1) - blocks.begin(b), panel);
}

/// tile[r][c] of rows [first, first + rows) and one panel of `weights`.
void multiply_tile(const Product& p, const void* weights, std::int64_t first, std::int64_t rows, std::int64_t panel, float* tile) {
  const std::byte* const at = static_cast<const std::byte*>(weights) + panel * p.panel_step;
  multiply_panel_for(p.weight_type, rows)(p.packed_rows + first * p.length, at, p.units, tile);
}

void pack_blocks(const TensorView& x, const RowBlocks& blocks, std::int64_t length, float* packed, ThreadPool& pool) {
  const Rows rows(x);
  const auto pack = [&](std::int64_t b) {
    const std::int64_t first = blocks.begin(b), last = blocks.begin(b + 1);
    by_real_dtype(x.dtype, [&](auto zero) { pack_block<decltype(zero)>(rows, first, last, length, packed + first * length); });
  };
  constexpr std::int64_t worth_threads = 1 << 15;  // elements: a few microseconds of work
  if ((blocks.last - blocks.first) * length >= worth_threads) return pool.dynamic_for(blocks.count(), pack);
  for (std::int64_t b = 0; b < blocks.count(); ++b) pack(b);
}

/// bias[first .. first + count) as float32; zeros where there is none.
void load_bias(const TensorView& bias, std::int64_t first, std::int64_t count, float* wide) {
  if (!bias.present) {
    std::fill_n(wide, panel_columns, 0.0f);
    return;
  }
  by_real_dtype(bias.dtype, [&](auto zero) {
    const auto* const from = bias.as<const decltype(zero)>() + first;
    for_vectors(static_cast<std::size_t>(count), [&](std::size_t i, std::size_t n) HWY_ATTR { hn::StoreU(load_n(from + i, n), FloatTag(), wide + i); });
  });
}

/// Stores tile + bias with the one rounding, at rows from `first` and the columns of `panel`.
void store_tile(const float* tile, std::int64_t rows, const TensorView& bias, const Rows& y, DType y_type, std::int64_t first, std::int64_t panel) {
  const std::int64_t column = panel * panel_columns, count = std::min(panel_columns, y.length() - column);
  alignas(64) float wide_bias[panel_columns];
  load_bias(bias, column, count, wide_bias);
  by_real_dtype(y_type, [&](auto zero) {
    for (std::int64_t r = 0; r < rows; ++r) {
      auto* const to = reinterpret_cast<decltype(zero)*>(y.row(first + r)) + column;
      for_vectors(static_cast<std::size_t>(count),
                  [&](std::size_t i, std::size_t n) HWY_ATTR { store_n(hn::Add(load(tile + r * panel_columns + i), load(wide_bias + i)), to + i, n); });
    }
  });
}

/// gate = activation(gate + gate_bias) * (up + up_bias), in place.
void combine_tiles(float* gate, const float* up, std::int64_t rows, Activation activation, const float* gate_bias, const float* up_bias) {
  for (std::int64_t i = 0; i < rows * panel_columns; i += static_cast<std::int64_t>(lanes())) {
    const std::int64_t c = i % panel_columns;
    const Real activated = activate(activation, Real(hn::Add(load(gate + i), load(gate_bias + c))));
    store(hn::Mul(activated.v, hn::Add(load(up + i), load(up_bias + c))), gate + i);
  }
}

using Tile = float[block_rows * panel_columns];

/// Packs rows of x, at most packed_row_limit at a time, and calls tile(product, first_row, rows, panel) over the whole result.
template <class TileBody>
void for_product(const LaunchArgs& args, const TensorView& w, std::int64_t weights, TileBody&& body) {
  const TensorView& x = args.inputs[0];
  const std::int64_t rows = Rows(args.outputs[0]).count();
  float* const packed = reinterpret_cast<float*>(args.workspace);
  for (std::int64_t first = 0; first < rows; first += packed_row_limit) {
    const RowBlocks blocks{first, std::min(rows, first + packed_row_limit)};
    const Product product = make_product(w, w.shape[0], w.shape[1], packed - first * round_up(w.shape[1], 2));
    const Items items = cut(product.panels(), blocks.count(), product.panel_step * weights, args.pool->size());
    pack_blocks(x, blocks, product.length, const_cast<float*>(product.packed_rows), *args.pool);
    args.pool->dynamic_for(items.count(), [&](std::int64_t item) {
      for_tiles(items, item, blocks, [&](std::int64_t at, std::int64_t count, std::int64_t panel) { body(product, at, count, panel); });
    });
  }
}

TensorView optional_input(const LaunchArgs& args, std::size_t i) { return args.has(i) ? args.inputs[i] : TensorView(); }

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
    load_bias(gate_bias, column, count, biases[0]);
    load_bias(up_bias, column, count, biases[1]);
    combine_tiles(gate, up, rows, activation, biases[0], biases[1]);
    store_tile(gate, rows, TensorView(), results, y.dtype, first, panel);
  });
}

void grouped_linear_packed(const LaunchArgs& args) {
  const TensorView &x = args.inputs[0], &w = args.inputs[1], &offsets = args.inputs[2], &y = args.outputs[0];
  check_group_offsets("grouped_linear", offsets, x.shape[0]);
  if (y.elements() == 0) return;
  const std::int64_t experts = w.shape[0];
  auto* const active = reinterpret_cast<std::int64_t*>(args.workspace);
  float* const packed = reinterpret_cast<float*>(args.workspace + round_up(experts * static_cast<std::int64_t>(sizeof(std::int64_t)), 64));
  const Product product = make_product(w, w.shape[1], w.shape[2], packed);
  std::int64_t active_count = 0;
  for (std::int64_t e = 0; e < experts; ++e)
    if (load_index(offsets, e) < load_index(offsets, e + 1)) active[active_count++] = e;
  const auto blocks_of = [&](std::int64_t e) { return RowBlocks{load_index(offsets, e), load_index(offsets, e + 1)}; };
  for (std::int64_t i = 0; i < active_count; ++i) pack_blocks(x, blocks_of(active[i]), product.length, packed, *args.pool);

  const Items items = cut(product.panels(), 1, product.panel_step, static_cast<int>(div_up(args.pool->size(), active_count)));
  const std::int64_t expert_step = round_up(product.panels() * product.panel_step, 64);
  const Rows results(y);
  args.pool->dynamic_for(active_count * items.panel_items(), [&](std::int64_t item) {
    const std::int64_t e = active[item / items.panel_items()];
    const RowBlocks blocks = blocks_of(e);
    Items expert_items = items;
    expert_items.blocks = expert_items.item_blocks = blocks.count();
    TensorView bias = optional_input(args, 3);
    if (bias.present) bias.data = Rows(args.inputs[3]).row(e);
    for_tiles(expert_items, item % items.panel_items(), blocks, [&](std::int64_t first, std::int64_t rows, std::int64_t panel) {
      alignas(64) Tile tile;
      multiply_tile(product, w.as<const std::byte>() + e * expert_step, first, rows, panel, tile);
      store_tile(tile, rows, bias, results, y.dtype, first, panel);
    });
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
