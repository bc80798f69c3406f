// scaled_mm and quantized grouped_linear over packed panels. int8: byte dot products where the machine has them, else float32 products in chunks that are
// short enough to be exact. fp8: float32 products of panels that were decoded when they were packed. The float32 steps after the sums follow the order that
// scaled_mm's semantics fix, so that int8 results agree to the bit.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/gemm/scaled.cpp"
#include <hwy/foreach_target.h>

#include <cstring>

#include "kernel/cpu/gemm/tiles-inl.hpp"
#include "kernel/cpu/gemm/vnni.hpp"
#include "kernel/cpu/isa.hpp"
#include "op/reference.hpp"
#include "op/scales.hpp"

#ifndef CERMET_GEMM_SCALED_ONCE
#define CERMET_GEMM_SCALED_ONCE
namespace cermet::cpu {

/// What is known when a product is bound.
struct ScaledPlan {
  ScaleGrid left, right;
  bool bytes = false;  ///< byte dot products
  std::int64_t blocks() const { return std::max(left.blocks, right.blocks); }
};

}  // namespace cermet::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {
namespace {

constexpr float one_scale = 1.0f;

/// Scales in memory: that of row (or column) `outer` and reduction block kb.
struct Scales {
  const float* data = &one_scale;
  std::int64_t group = 1, step = 0, block_step = 0;
  float at(std::int64_t outer, std::int64_t kb) const { return data[outer / group * step + kb * block_step]; }
};

/// Scales of a weight; blocks may be strided from row to row.
Scales weight_scales(const TensorView& view, const ScaleGrid& grid) {
  if (!view.present) return {};
  const auto* const data = view.as<const float>();
  if (grid.group == 0) return {data, 1, 0, 0};
  return {data, grid.group, view.strides[0], grid.blocks > 1 ? 1 : 0};
}

/// Vectors of 32-bit integers that go with vectors of float32.
using IntTag = hn::RebindToSigned<FloatTag>;
using IntTile = std::int32_t[block_rows * panel_columns];

/// The packed left operand and what multiplies it.
struct ScaledProduct {
  DType type;  ///< i8 or an fp8 type, of the weight
  bool bytes;
  const MultiplyPanel* multiply;  ///< float32 products
  std::int64_t length, columns;   ///< K, N
  std::int64_t padded;            ///< K, padded to a whole unit of any layout
  std::int64_t block;             ///< reduction steps of one scale
  std::int64_t panel_step;
  std::byte* packed_rows;  ///< of row first_row: bytes, or float32, `padded` of them each
  std::int64_t first_row;
  Scales left;
  const std::int32_t* zero_points;  ///< null for none
  std::int64_t zero_point_step;

  std::int64_t row_bytes() const { return padded * (bytes ? 1 : static_cast<std::int64_t>(sizeof(float))); }
  std::byte* packed(std::int64_t row) const { return packed_rows + (row - first_row) * row_bytes(); }
  std::int64_t blocks() const { return std::max<std::int64_t>(1, div_up(length, block)); }
};

/// One weight matrix and what is added to its product.
struct ScaledWeight {
  const std::byte* panels;
  Scales scales;
  TensorView bias;
};

/// Where results go.
struct ScaledResult {
  Rows y;
  DType type;
  TensorView residual;
  float out_scale;  ///< of an i8 result
};

/// Packs rows as [k / 4][row][4] bytes, quantized values + 128.
void pack_codes(const Rows& x, std::int64_t first, std::int64_t last, std::byte* packed) {
  const std::int64_t rows = last - first, whole = x.length() / 4, rest = x.length() % 4;
  const auto put = [&](std::int64_t r, std::int64_t q, std::size_t count) {
    std::uint32_t four = 0;
    std::memcpy(&four, x.row(first + r) + 4 * q, count);
    four ^= 0x80808080u;
    std::memcpy(packed + (q * rows + r) * 4, &four, sizeof four);
  };
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t q = 0; q < whole; ++q) put(r, q, 4);
  for (std::int64_t r = 0; rest > 0 && r < rows; ++r) put(r, whole, static_cast<std::size_t>(rest));
}

void pack_rows(const TensorView& x, const RowBlocks& blocks, const ScaledProduct& p, ThreadPool& pool) {
  const Rows rows(x);
  for_blocks(blocks, (blocks.last - blocks.first) * p.padded, pool, [&](std::int64_t first, std::int64_t last) {
    if (p.bytes) pack_codes(rows, first, last, p.packed(first));
    else pack_block(rows, x.dtype, first, last, p.padded, reinterpret_cast<float*>(p.packed(first)));
  });
}

/// tile = sums over reduction steps [begin, end), exact. `begin` is a multiple of sum_block.
void multiply_integers(const ScaledProduct& p, const std::byte* panel, std::int64_t first, std::int64_t rows, std::int64_t begin, std::int64_t end,
                       std::int32_t* tile) {
  const auto* const codes = reinterpret_cast<const std::int8_t*>(panel);
  if (p.bytes)
    return multiply_codes_vnni(rows)(reinterpret_cast<const std::uint8_t*>(p.packed(first)) + begin * rows, codes + begin * panel_columns,
                                     div_up(end - begin, 4), Ahead::of_stream(codes + begin * panel_columns, 4 * panel_columns), tile);
  constexpr std::int64_t exact = 1024;  // 1024 * 128 * 128 = 2^24: float32 holds every partial sum
  std::fill_n(tile, rows * panel_columns, 0);
  for (std::int64_t k = begin; k < end; k += exact) {
    alignas(64) Tile sums;
    std::fill_n(sums, rows * panel_columns, 0.0f);
    const auto* const from = reinterpret_cast<const float*>(p.packed(first)) + k * rows;
    const std::int8_t* const panel_part = codes + k * panel_columns;
    p.multiply[rows - 1](from, panel_part, div_up(std::min(exact, end - k), 4), Ahead::of_stream(panel_part, 4 * panel_columns), sums);
    for (std::int64_t i = 0; i < rows * panel_columns; i += static_cast<std::int64_t>(lanes()))
      hn::StoreU(hn::Add(hn::LoadU(IntTag(), tile + i), hn::ConvertTo(IntTag(), load(sums + i))), IntTag(), tile + i);
  }
}

/// tile[r][c] += bias[c] - factor(r) * column_sums[c].
template <class Factor>
void correct_integers(std::int32_t* tile, std::int64_t rows, const std::int32_t* column_sums, const std::int32_t* bias, Factor&& factor) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const auto f = hn::Set(IntTag(), factor(r));
    for (std::int64_t c = 0; c < panel_columns; c += static_cast<std::int64_t>(lanes())) {
      const auto shift = hn::Sub(hn::LoadU(IntTag(), bias + c), hn::Mul(f, hn::LoadU(IntTag(), column_sums + c)));
      hn::StoreU(hn::Add(hn::LoadU(IntTag(), tile + r * panel_columns + c), shift), IntTag(), tile + r * panel_columns + c);
    }
  }
}

/// Integer sums of a tile over block kb (all of K where there is one block), zero points and int32 bias included.
void integer_tile(const ScaledProduct& p, const ScaledWeight& w, std::int64_t first, std::int64_t rows, std::int64_t panel, std::int64_t kb,
                  std::int32_t* tile) {
  const std::byte* const at = w.panels + panel * p.panel_step;
  multiply_integers(p, at, first, rows, kb * p.block, std::min(p.length, (kb + 1) * p.block), tile);
  alignas(64) std::int32_t bias[panel_columns] = {};
  if (w.bias.present && w.bias.dtype == DType::i32)
    std::memcpy(bias, w.bias.as<const std::int32_t>() + panel * panel_columns,
                static_cast<std::size_t>(std::min(panel_columns, p.columns - panel * panel_columns)) * sizeof(std::int32_t));
  const std::byte* const sums =
      p.blocks() > 1 ? w.panels + block_sums_offset(p.columns, p.length, panel) + kb * panel_columns * 4 : at + panel_element_bytes(p.type, p.length);
  const std::int32_t offset = p.bytes ? 128 : 0;
  correct_integers(tile, rows, reinterpret_cast<const std::int32_t*>(sums), bias, [&](std::int64_t r) {
    const std::uint32_t zero_point = p.zero_points ? static_cast<std::uint32_t>(p.zero_points[(first + r) * p.zero_point_step]) : 0u;
    return static_cast<std::int32_t>(zero_point + static_cast<std::uint32_t>(offset));
  });
}

/// sum = [sum +] left * (right * tile) of block kb.
void scale_tile(const ScaledProduct& p, const ScaledWeight& w, std::int64_t first, std::int64_t rows, std::int64_t panel, std::int64_t kb, const float* tile,
                float* sum) {
  alignas(64) float right[panel_columns];
  const std::int64_t column = panel * panel_columns;
  if (w.scales.group == 1 && w.scales.step == 1 && column + panel_columns <= p.columns)  // one for each column: nothing to look up
    std::memcpy(right, w.scales.data + column + kb * w.scales.block_step, sizeof right);
  else
    for (std::int64_t c = 0; c < panel_columns; ++c) right[c] = w.scales.at(std::min(column + c, p.columns - 1), kb);
  for (std::int64_t i = 0; i < rows * panel_columns; i += static_cast<std::int64_t>(lanes())) {
    const auto left = hn::Set(FloatTag(), p.left.at(first + i / panel_columns, kb));
    const auto term = hn::Mul(left, hn::Mul(load(right + i % panel_columns), load(tile + i)));
    store(kb == 0 ? term : hn::Add(load(sum + i), term), sum + i);
  }
}

/// Scaled sums of a tile, before bias and residual.
void scaled_tile(const ScaledProduct& p, const ScaledWeight& w, std::int64_t first, std::int64_t rows, std::int64_t panel, float* sum) {
  for (std::int64_t kb = 0; kb < p.blocks(); ++kb) {
    alignas(64) Tile tile;
    if (p.type == DType::i8) {
      alignas(64) IntTile integers;
      integer_tile(p, w, first, rows, panel, kb, integers);
      for (std::int64_t i = 0; i < rows * panel_columns; i += static_cast<std::int64_t>(lanes()))
        store(hn::ConvertTo(FloatTag(), hn::LoadU(IntTag(), integers + i)), tile + i);
    } else {
      const std::int64_t begin = kb * p.block, end = std::min(p.length, begin + p.block);
      const auto* const elements = reinterpret_cast<const format::bf16*>(w.panels + panel * p.panel_step) + begin * panel_columns;
      std::fill_n(tile, rows * panel_columns, 0.0f);
      p.multiply[rows - 1](reinterpret_cast<const float*>(p.packed(first)) + begin * rows, elements, div_up(end - begin, 2),
                           Ahead::of_stream(elements, 4 * panel_columns), tile);
    }
    scale_tile(p, w, first, rows, panel, kb, tile, sum);
  }
}

/// v / scale, rounded half to even and saturated; NaN gives 0.
void quantize_row(const float* v, float scale, std::int64_t count, std::int8_t* to) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float q = std::nearbyint(v[i] / scale);
    to[i] = static_cast<std::int8_t>(q >= 127 ? 127 : q <= -128 ? -128 : q == q ? q : 0);
  }
}

/// Adds bias and residual to a tile of scaled sums and stores it.
void finish_tile(float* tile, std::int64_t rows, const TensorView& bias, const ScaledResult& result, std::int64_t first, std::int64_t panel) {
  const std::int64_t column = panel * panel_columns, count = std::min(panel_columns, result.y.length() - column);
  const bool has_bias = bias.present && bias.dtype != DType::i32;
  alignas(64) float addend[panel_columns] = {};
  const auto add = [&](std::int64_t r) HWY_ATTR {
    for (std::int64_t c = 0; c < panel_columns; c += static_cast<std::int64_t>(lanes()))
      store(hn::Add(load(tile + r * panel_columns + c), load(addend + c)), tile + r * panel_columns + c);
  };
  if (has_bias) {
    load_wide(bias, column, count, addend);
    for (std::int64_t r = 0; r < rows; ++r) add(r);
  }
  if (result.residual.present) {
    const Rows residual(result.residual);
    for (std::int64_t r = 0; r < rows; ++r) {
      widen(residual.row(first + r), result.residual.dtype, column, count, addend);
      add(r);
    }
  }
  if (result.type != DType::i8) return store_tile(tile, rows, TensorView(), result.y, result.type, first, panel);
  for (std::int64_t r = 0; r < rows; ++r)
    quantize_row(tile + r * panel_columns, result.out_scale, count, reinterpret_cast<std::int8_t*>(result.y.row(first + r)) + column);
}

void compute_tile(const ScaledProduct& p, const ScaledWeight& w, const ScaledResult& result, std::int64_t first, std::int64_t rows, std::int64_t panel) {
  if (result.type == DType::i32) {
    alignas(64) IntTile integers;
    integer_tile(p, w, first, rows, panel, 0, integers);
    const std::int64_t column = panel * panel_columns, count = std::min(panel_columns, p.columns - column);
    for (std::int64_t r = 0; r < rows; ++r)
      std::memcpy(result.y.row(first + r) + column * 4, integers + r * panel_columns, static_cast<std::size_t>(count) * 4);
    return;
  }
  alignas(64) Tile sum;
  scaled_tile(p, w, first, rows, panel, sum);
  finish_tile(sum, rows, w.bias, result, first, panel);
}

void compute_tiles(const ScaledProduct& p, const ScaledWeight& w, const ScaledResult& result, const BlockGroup& group, std::int64_t panel) {
  for (std::int64_t i = 0; i < group.count; ++i) compute_tile(p, w, result, group.first(i), group.rows(i), panel);
}

/// A dense copy of `count` leading elements of an operand of one element type, or the operand itself where it is dense.
template <class T>
const T* dense(const TensorView& view, std::int64_t count, T* copy) {
  if (view.is_dense()) return view.as<const T>();
  const std::int64_t row = view.shape.back();
  const Rows rows(view);
  for (std::int64_t r = 0; r < count / row; ++r) std::memcpy(copy + r * row, rows.row(r), static_cast<std::size_t>(row) * sizeof(T));
  return copy;
}

/// Workspace, in order: scales of the left operand, zero points, packed rows.
ScaledProduct make_scaled_product(const ScaledPlan& plan, const TensorView& weight_matrix, std::int64_t rows, const TensorView& left_scale,
                                  const TensorView& zero_points, std::byte* workspace) {
  const std::int64_t columns = weight_matrix.shape[weight_matrix.shape.rank() - 2], length = weight_matrix.shape.back();
  const bool blocked = plan.blocks() > 1;
  ScaledProduct p{.type = weight_matrix.dtype,
                  .bytes = plan.bytes,
                  .multiply = float_products(panel_type(weight_matrix.dtype)),
                  .length = length,
                  .columns = columns,
                  .padded = round_up(length, 4),
                  .block = blocked ? scale_block : std::max<std::int64_t>(1, length),
                  .panel_step = panel_bytes(weight_matrix.dtype, length),
                  .packed_rows = workspace,
                  .first_row = 0,
                  .left = {},
                  .zero_points = nullptr,
                  .zero_point_step = 0};
  const std::int64_t scale_count = plan.left.count(rows);
  if (left_scale.present) {
    p.left.data = dense(left_scale, scale_count, reinterpret_cast<float*>(p.packed_rows));
    if (plan.left.group != 0) p.left.step = plan.left.blocks, p.left.block_step = plan.left.blocks > 1 ? 1 : 0;
    p.packed_rows += round_up(left_scale.elements() * static_cast<std::int64_t>(sizeof(float)), 64);
  }
  if (zero_points.present) {
    const std::int64_t count = zero_points.elements();
    p.zero_points = dense(zero_points, count, reinterpret_cast<std::int32_t*>(p.packed_rows));
    p.zero_point_step = count == 1 ? 0 : 1;
    p.packed_rows += round_up(count * 4, 64);
  }
  return p;
}

}  // namespace

void scaled_mm_packed(const LaunchArgs& args, const ScaledPlan& plan, const WeightLayout* repack) {
  const TensorView &a = args.inputs[0], &b = args.inputs[1], &y = args.outputs[0];
  if (y.elements() == 0) return;
  const Rows results(y);
  const TensorView out_scale = optional_input(args, 7);
  ScaledProduct p = make_scaled_product(plan, b, results.count(), optional_input(args, 2), optional_input(args, 5), args.workspace);
  ScaledWeight w{b.as<const std::byte>(), weight_scales(optional_input(args, 3), plan.right), optional_input(args, 4)};
  if (repack) {
    repack->pack(b, p.packed_rows, *args.pool);
    w.panels = p.packed_rows;
    p.packed_rows += round_up(panels_bytes(b.dtype, b.shape[0], b.shape[1]), 64);
  }
  const ScaledResult result{results, y.dtype, optional_input(args, 6), out_scale.present ? *out_scale.as<const float>() : 1.0f};
  for (; p.first_row < results.count(); p.first_row += packed_row_limit) {
    const RowBlocks blocks{p.first_row, std::min(results.count(), p.first_row + packed_row_limit)};
    pack_rows(a, blocks, p, *args.pool);
    for_tiles(blocks, panel_count(p.columns), p.panel_step, *args.pool,
              [&](const BlockGroup& group, std::int64_t panel) { compute_tiles(p, w, result, group, panel); });
  }
}

void grouped_linear_scaled(const LaunchArgs& args, const ScaledPlan& plan, const WeightLayout* repack) {
  const TensorView &x = args.inputs[0], &w = args.inputs[1], &y = args.outputs[0];
  const Groups groups(args.inputs[2], x.shape[0], args.workspace);
  if (y.elements() == 0) return;
  ScaledProduct p = make_scaled_product(plan, w, x.shape[0], optional_input(args, 4), TensorView(), args.workspace + group_workspace_bytes(w.shape[0]));
  const std::int64_t matrix_step = round_up(panels_bytes(w.dtype, p.columns, p.length), 64);
  const std::byte* matrices = w.as<const std::byte>();
  if (repack) {
    for (std::int64_t i = 0; i < groups.active_count; ++i) {
      const std::int64_t e = groups.active[i];
      repack->pack(optional_row(args, 1, e), p.packed_rows + e * matrix_step, *args.pool);
    }
    matrices = p.packed_rows;
    p.packed_rows += w.shape[0] * matrix_step;
  }
  const ScaledResult result{Rows(y), y.dtype, TensorView(), 1.0f};
  for (std::int64_t i = 0; i < groups.active_count; ++i) pack_rows(x, groups.rows(groups.active[i]), p, *args.pool);
  for_groups(groups, panel_count(p.columns), p.panel_step, *args.pool, [&](std::int64_t e, const BlockGroup& group, std::int64_t panel) {
    const ScaledWeight weight{matrices + e * matrix_step, weight_scales(optional_row(args, 5, e), plan.right), optional_row(args, 3, e)};
    compute_tiles(p, weight, result, group, panel);
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

/// `left` and `right` number the operands that are scales.
ScaledPlan plan_of(const Problem& p, std::size_t left, std::size_t right) {
  ScaledPlan plan{.left = {}, .right = {}, .bytes = byte_products(p)};
  const Dims &rows = p.input(0).dims, &weight = p.input(1).dims;
  if (p.has(left)) plan.left = *row_scale_grid(p.input(left).dims, {rows.begin(), rows.end() - 1}, rows.back());
  if (p.has(right)) {
    const Dims& scale = p.input(right).dims;
    plan.right = weight.size() == 3 ? *stacked_scale_grid(scale, weight) : *column_scale_grid(scale, weight[0], weight[1]);
  }
  return plan;
}

std::int64_t packed_row_bytes(const Problem& p, std::int64_t rows) {
  return rows * round_up(p.size(0, -1), 4) * (byte_products(p) ? 1 : static_cast<std::int64_t>(sizeof(float)));
}

/// Scales of the left operand, packed rows, and the panels of a weight that is packed in every run.
std::int64_t product_workspace(const Problem& p, std::size_t left_scale, std::int64_t packed_rows) {
  std::int64_t bytes = packed_row_bytes(p, packed_rows);
  if (p.has(left_scale)) bytes += round_up(max_rows(p, left_scale, 0) * static_cast<std::int64_t>(sizeof(float)), 64);
  if (p.is_constant(1)) return bytes;
  return bytes + max_rows(p, 1, 2) * round_up(panels_bytes(p.input(1).dtype, p.size(1, -2), p.size(1, -1)), 64);
}

const WeightLayout* weight_layout(const Problem& p, std::size_t operand) { return operand == 1 && p.is_constant(1) ? panel_layout(p.input(1).dtype) : nullptr; }

const WeightLayout* repacked_layout(const Problem& p) { return p.is_constant(1) ? nullptr : panel_layout(p.input(1).dtype); }

}  // namespace

extern const Kernel gemm_scaled_mm_packed{
    .name = "gemm.scaled_mm.packed",
    .op = OpKind::scaled_mm,
    .summary = "int8 by byte dot products or exact float32, fp8 as bf16, over packed panels; a weight that is not constant is packed in every run",
    .bind = [](const Problem& p) -> Launcher {
      return [plan = plan_of(p, 2, 3), repack = repacked_layout(p)](const LaunchArgs& args) { HWY_DYNAMIC_DISPATCH(scaled_mm_packed)(args, plan, repack); };
    },
    .weight_layout = weight_layout,
    .workspace =
        [](const Problem& p, int) {
          const std::int64_t zero_points = p.has(5) ? round_up(max_rows(p, 5, 0) * static_cast<std::int64_t>(sizeof(std::int32_t)), 64) : 0;
          return zero_points + product_workspace(p, 2, std::min(packed_row_limit, max_rows(p, 0)));
        },
};

extern const Kernel gemm_grouped_linear_scaled{
    .name = "gemm.grouped_linear.scaled",
    .op = OpKind::grouped_linear,
    .summary = "as gemm.scaled_mm.packed, for the groups that have rows",
    .declines = [](const Problem& p) -> Decline { return dtypes::real.contains(p.input(0).dtype) ? Decline("x is not quantized") : std::nullopt; },
    .bind = [](const Problem& p) -> Launcher {
      return [plan = plan_of(p, 4, 5), repack = repacked_layout(p)](const LaunchArgs& args) {
        HWY_DYNAMIC_DISPATCH(grouped_linear_scaled)(args, plan, repack);
      };
    },
    .weight_layout = weight_layout,
    .workspace = [](const Problem& p, int) { return group_workspace_bytes(p.size(1, 0)) + product_workspace(p, 4, max_rows(p, 0)); },
};

}  // namespace cermet::cpu
#endif
