// Sums of products of quantized operands, where their epilogue starts: include after <hwy/foreach_target.h>.
#if defined(CERMET_GEMM_SCALED_SUMS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CERMET_GEMM_SCALED_SUMS_INL
#undef CERMET_GEMM_SCALED_SUMS_INL
#else
#define CERMET_GEMM_SCALED_SUMS_INL
#endif

#include <cstring>

#include "kernel/cpu/gemm/packed_product-inl.hpp"
#include "kernel/cpu/gemm/scaled.hpp"
#include "kernel/cpu/gemm/vnni.hpp"

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {

inline constexpr float one_scale = 1.0f;

/// Scales of the left operand where they cover blocks of the reduction.
struct RowScales {
  std::optional<Rows> rows;  ///< else one scale for all
  const float* one = &one_scale;
  std::int64_t block_step = 0, first_row = 0;

  /// Those that are made from row `first` on, [rows, blocks].
  RowScales(const TensorView& made, std::int64_t first)
      : rows(Rows(made)), block_step(made.shape[1] > 1 ? 1 : 0), first_row(first) {}
  RowScales(const TensorView& view, const ScaleGrid& grid, int result_rank) {
    if (!view.present) return;
    if (grid.group == 0) one = view.as<const float>();
    else rows.emplace(view, view.shape.rank() == result_rank ? 1 : 0);
    if (grid.blocks > 1) block_step = view.strides.back();
  }
  float at(std::int64_t row, std::int64_t kb) const {
    return rows ? reinterpret_cast<const float*>(rows->row(row - first_row))[kb * block_step] : *one;
  }
};

/// The same of a weight: the scale of column c and block kb.
struct ColumnScales {
  const float* data = &one_scale;
  std::int64_t group = 1, step = 0, block_step = 0;

  ColumnScales(const TensorView& view, const ScaleGrid& grid) {
    if (!view.present) return;
    data = view.as<const float>();
    if (grid.group != 0)
      group = grid.group, step = view.strides[0], block_step = grid.blocks > 1 ? view.strides.back() : 0;
  }
  float at(std::int64_t c, std::int64_t kb) const { return data[c / group * step + kb * block_step]; }
};

/// Vectors of 32-bit integers that go with vectors of float32.
using IntTag = hn::RebindToSigned<FloatTag>;

/// The packed left operand and what multiplies it.
struct ScaledProduct {
  DType type;  ///< i8 or an fp8 type, of the weight
  RowForm form;
  bool blocked;
  const MultiplyPanel* multiply;  ///< float32 products
  std::int64_t length, columns;   ///< K, N
  std::int64_t padded;            ///< K of packed rows, padded to a whole unit of any layout
  std::int64_t panel_step;
  std::byte* packed_rows;  ///< of row first_row: bytes, or float32, `padded` of them each
  std::int64_t first_row;
  RowScales left;
  const float* row_scales =
      nullptr;  ///< those that are made, from row first_row on, each repeated as a tile's operands are

  ScaledProduct(const ScaledPlan& plan, const LaunchArgs& args, const TensorView& weight, std::byte* workspace)
      : type(weight.dtype),
        form(plan.form),
        blocked(plan.blocked()),
        multiply(float_products(panel_type(weight.dtype))),
        length(weight.shape.back()),
        columns(weight.shape[weight.shape.rank() - 2]),
        padded(padded_quantized(plan.form, length)),
        panel_step(panel_bytes(weight.dtype, length)),
        packed_rows(workspace),
        first_row(0),
        left(plan.binding.operands(args, plan.left_scale), plan.left, args.outputs[plan.binding.result].shape.rank()) {}
  std::int64_t row_bytes() const {
    return padded * (form == RowForm::wide ? static_cast<std::int64_t>(sizeof(float)) : 1);
  }
  std::byte* packed(std::int64_t row) const { return packed_rows + (row - first_row) * row_bytes(); }

  /// The same where whole rows of int8 go by tiles.
  PackedProduct of_tiles() const {
    constexpr std::int64_t unit = 4;
    return {.form = form,
            .multiply = nullptr,
            .amx = amx_products(type),
            .units = div_up(length, unit),
            .unit_bytes = unit * panel_columns,
            .panel_step = panel_step,
            .row_unit_bytes = unit,
            .row_bytes = row_bytes(),
            .packed_rows = packed_rows,
            .first_row = first_row};
  }
};

/// One weight matrix.
struct ScaledWeight {
  const std::byte* panels;
  ColumnScales scales;
};

/// Packs rows as [k / 4][row][4] bytes, quantized values + 128.
inline void pack_quantized(const Rows& x, std::int64_t first, std::int64_t last, std::byte* packed) {
  const std::int64_t rows = last - first, whole = x.length() / 4, tail = x.length() % 4;
  const auto put = [&](std::int64_t r, std::int64_t q, std::size_t count) {
    std::uint32_t four = 0;
    std::memcpy(&four, x.row(first + r) + 4 * q, count);
    four ^= 0x80808080u;
    std::memcpy(packed + (q * rows + r) * 4, &four, sizeof four);
  };
  std::int64_t done = 0;
#if HWY_TARGET != HWY_SCALAR
  if (rows >= 4) done = whole / 4 * 4;  // four rows by four times four bytes
  const hn::FixedTag<std::uint8_t, 16> bytes;
  const hn::FixedTag<std::uint32_t, 4> d;
  const auto offset = hn::Set(d, 0x80808080u);
  for (std::int64_t next = 0; done > 0 && next < rows; next += 4) {
    const std::int64_t r = std::min(next, rows - 4);  // the last four rows may overlap the ones before
    const std::uint8_t* from[4];
    for (int i = 0; i < 4; ++i) from[i] = reinterpret_cast<const std::uint8_t*>(x.row(first + r + i));
    auto* to = reinterpret_cast<std::uint8_t*>(packed + r * 4);
    const auto put_four = [&](auto v) HWY_ATTR {
      hn::StoreU(hn::BitCast(bytes, v), bytes, to);
      to += rows * 4;
    };
    for (std::int64_t k = 0; k < done * 4; k += 16) {
      const auto load_quantized = [&](int i) HWY_ATTR {
        return hn::Xor(hn::BitCast(d, hn::LoadU(bytes, from[i] + k)), offset);
      };
      const auto a = load_quantized(0), b = load_quantized(1), c = load_quantized(2), e = load_quantized(3);
      const auto ac = hn::InterleaveLower(d, a, c), be = hn::InterleaveLower(d, b, e);
      const auto upper_ac = hn::InterleaveUpper(d, a, c), upper_be = hn::InterleaveUpper(d, b, e);
      put_four(hn::InterleaveLower(d, ac, be));
      put_four(hn::InterleaveUpper(d, ac, be));
      put_four(hn::InterleaveLower(d, upper_ac, upper_be));
      put_four(hn::InterleaveUpper(d, upper_ac, upper_be));
    }
  }
#endif
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t q = done; q < whole; ++q) put(r, q, 4);
  for (std::int64_t r = 0; tail > 0 && r < rows; ++r) put(r, whole, static_cast<std::size_t>(tail));
}

/// Packs rows [first, last) of x at `to`.
inline void pack_rows(const Rows& x, DType dtype, std::int64_t first, std::int64_t last, const ScaledProduct& p,
                      std::byte* to) {
  if (p.form == RowForm::chunks) pack_chunks(x, first, last, x.length(), to);
  else if (p.form == RowForm::units) pack_quantized(x, first, last, to);
  else pack_block(x, dtype, first, last, p.padded, reinterpret_cast<float*>(to));
}

inline void pack_rows(const TensorView& x, const RowBlocks& blocks, const ScaledProduct& p, ThreadPool& pool) {
  const Rows rows(x);
  for_blocks(blocks, (blocks.last - blocks.first) * p.padded, pool,
             [&](std::int64_t first, std::int64_t last) { pack_rows(rows, x.dtype, first, last, p, p.packed(first)); });
}

/// Makes rows that other nodes give, with their scales, and packs them. They lie behind the packed rows, of which there
/// are `held` from p.first_row on. Threads share out rows where there are few blocks.
inline void pack_made_rows(const LaunchArgs& args, const ScaledPlan& plan, const RowBlocks& blocks, std::int64_t held,
                           ScaledProduct& p) {
  constexpr auto repeated = static_cast<std::int64_t>(TileOperand::repeated);
  const Prologue& prologue = plan.binding.prologue;
  const std::int64_t count = blocks.last - blocks.first, work = 4 * count * p.padded,
                     step = plan.blocked() ? plan.left.blocks : repeated;
  const TensorView quantized = prologue.rows(held, p.length, p.packed_rows + round_up(held * p.row_bytes(), 64));
  auto* const scales = reinterpret_cast<float*>(quantized.as<std::byte>() + round_up(held * p.length, 64));
  const TensorView made_scales =
      plan.makes_scales ? TensorView(scales, DType::f32, {held, plan.left.blocks}, {step, 1}) : TensorView();
  if (plan.makes_scales && plan.blocked()) p.left = RowScales(made_scales, p.first_row);
  else if (plan.makes_scales) p.row_scales = scales;
  const auto make = [&](std::int64_t first, std::int64_t last) {
    prologue.run(args, first, last, quantized, p.first_row, made_scales);
    for (std::int64_t r = first - p.first_row; p.row_scales && r < last - p.first_row; ++r)
      std::fill_n(scales + r * repeated + 1, repeated - 1, scales[r * repeated]);
  };
  // A launch for each thread, or for a few blocks: one for each block would cost more than what it saves.
  const std::int64_t groups = div_up(blocks.count(), group_blocks);
  const bool shared = work >= worth_threads && args.pool->size() > 1, by_rows = groups < 2 * args.pool->size();
  if (by_rows && shared)
    args.pool->parallel_for(
        count, 1, [&](std::int64_t first, std::int64_t last) { make(blocks.first + first, blocks.first + last); });
  else if (by_rows) make(blocks.first, blocks.last);
  const Rows rows(quantized);
  const auto run = [&](std::int64_t group) {
    const std::int64_t first = group * group_blocks, last = std::min(first + group_blocks, blocks.count());
    if (!by_rows) make(blocks.begin(first), blocks.begin(last));
    for (std::int64_t b = first; b < last; ++b)
      pack_rows(rows, quantized.dtype, blocks.begin(b) - p.first_row, blocks.begin(b + 1) - p.first_row, p,
                p.packed(blocks.begin(b)));
  };
  if (shared) return args.pool->dynamic_for(groups, run);
  for (std::int64_t group = 0; group < groups; ++group) run(group);
}

/// tile = exact sums over reduction steps [begin, end). `begin` is a multiple of sum_block; column_sums are those of
/// these steps.
inline void multiply_integers(const ScaledProduct& p, const std::byte* panel, std::int64_t first, std::int64_t rows,
                              std::int64_t begin, std::int64_t end, const std::int32_t* column_sums,
                              std::int32_t* tile) {
  const auto* const quantized = reinterpret_cast<const std::int8_t*>(panel);
  if (p.form == RowForm::chunks)
    return amx_products(DType::i8)[rows - 1](p.packed(first) + begin * rows, quantized + begin * panel_columns,
                                             div_up(end - begin, 4), Ahead::none(), true,
                                             reinterpret_cast<float*>(tile));
  if (p.form == RowForm::units)
    return multiply_quantized_vnni(rows)(reinterpret_cast<const std::uint8_t*>(p.packed(first)) + begin * rows,
                                         quantized + begin * panel_columns, div_up(end - begin, 4),
                                         Ahead::of_stream(quantized + begin * panel_columns, 4 * panel_columns),
                                         column_sums, tile);
  constexpr std::int64_t exact = 1024;  // 1024 * 128 * 128 = 2^24: float32 holds every partial sum
  std::fill_n(tile, rows * panel_columns, 0);
  for (std::int64_t k = begin; k < end; k += exact) {
    alignas(64) Tile sums;
    std::fill_n(sums, rows * panel_columns, 0.0f);
    const auto* const from = reinterpret_cast<const float*>(p.packed(first)) + k * rows;
    const std::int8_t* const panel_part = quantized + k * panel_columns;
    p.multiply[rows - 1](from, panel_part, div_up(std::min(exact, end - k), 4),
                         Ahead::of_stream(panel_part, 4 * panel_columns), sums);
    for (std::int64_t i = 0; i < rows * panel_columns; i += static_cast<std::int64_t>(lanes()))
      hn::StoreU(hn::Add(hn::LoadU(IntTag(), tile + i), hn::ConvertTo(IntTag(), load(sums + i))), IntTag(), tile + i);
  }
}

/// tile = sums over reduction steps [begin, end) of fp8 values.
inline void multiply_reals(const ScaledProduct& p, const std::byte* panel, std::int64_t first, std::int64_t rows,
                           std::int64_t begin, std::int64_t end, float* tile) {
  const auto* const elements = reinterpret_cast<const format::bf16*>(panel) + begin * panel_columns;
  std::fill_n(tile, rows * panel_columns, 0.0f);
  p.multiply[rows - 1](reinterpret_cast<const float*>(p.packed(first)) + begin * rows, elements, div_up(end - begin, 2),
                       Ahead::of_stream(elements, 4 * panel_columns), tile);
}

/// sum = [sum +] left * (right * tile) of block kb; the tile holds integers of an int8 product.
inline void scale_tile(const ScaledProduct& p, const ScaledWeight& w, std::int64_t first, std::int64_t rows,
                       std::int64_t panel, std::int64_t kb, const float* tile, float* sum) {
  alignas(64) float right[panel_columns];
  const std::int64_t column = panel * panel_columns;
  for (std::int64_t c = 0; c < panel_columns; ++c) right[c] = w.scales.at(std::min(column + c, p.columns - 1), kb);
  for (std::int64_t r = 0; r < rows; ++r) {
    const auto left = hn::Set(FloatTag(), p.left.at(first + r, kb));
    for (std::int64_t c = 0; c < panel_columns; c += static_cast<std::int64_t>(lanes())) {
      const std::int64_t i = r * panel_columns + c;
      const auto value =
          p.type == DType::i8 ? hn::ConvertTo(FloatTag(), hn::BitCast(IntTag(), load(tile + i))) : load(tile + i);
      const auto term = hn::Mul(left, hn::Mul(load(right + c), value));
      store(kb == 0 ? term : hn::Add(load(sum + i), term), sum + i);
    }
  }
}

/// What the epilogue of a block of rows and a panel starts from: sums, int32 of int8 operands, or float32; with block
/// scales scaled and float32.
inline void multiply_tile(const ScaledProduct& p, const ScaledWeight& w, std::int64_t first, std::int64_t rows,
                          std::int64_t panel, float* sum) {
  const std::byte* const at = w.panels + panel * p.panel_step;
  const auto multiply = [&](std::int64_t begin, std::int64_t end, const std::byte* column_sums, float* tile) {
    if (p.type == DType::i8)
      multiply_integers(p, at, first, rows, begin, end, reinterpret_cast<const std::int32_t*>(column_sums),
                        reinterpret_cast<std::int32_t*>(tile));
    else multiply_reals(p, at, first, rows, begin, end, tile);
  };
  if (!p.blocked) return multiply(0, p.length, at + panel_element_bytes(p.type, p.length), sum);
  for (std::int64_t kb = 0; kb < div_up(p.length, scale_block); ++kb) {
    alignas(64) Tile tile;
    const std::byte* const column_sums =
        w.panels + block_sums_offset(p.columns, p.length, panel) + kb * panel_columns * 4;
    multiply(kb * scale_block, std::min(p.length, (kb + 1) * scale_block), column_sums, tile);
    scale_tile(p, w, first, rows, panel, kb, tile, sum);
  }
}

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
