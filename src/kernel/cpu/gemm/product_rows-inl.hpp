// Rows of a product, packed, with what comes before it: include after <hwy/foreach_target.h>.
#if defined(CERMET_PRODUCT_ROWS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CERMET_PRODUCT_ROWS_INL
#undef CERMET_PRODUCT_ROWS_INL
#else
#define CERMET_PRODUCT_ROWS_INL
#endif

#include <cstring>

#include "kernel/cpu/gemm/bf16.hpp"
#include "kernel/cpu/gemm/packed_product-inl.hpp"
#include "kernel/cpu/gemm/parts.hpp"

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {

/// The product of a weight type with packed rows: float32, or bf16 of both operands.
inline PackedProduct make_product(const TensorView& w, RowForm form, std::byte* workspace, std::int64_t first_row) {
  const std::int64_t length = w.shape.back(), unit = panel_unit(w.dtype);
  const auto element_bytes = byte_size(w.dtype);
  return {.form = form,
          .multiply = form == RowForm::units ? pair_products() : float_products(w.dtype),
          .amx = form == RowForm::chunks ? amx_products(w.dtype) : nullptr,
          .units = div_up(length, unit),
          .unit_bytes = unit * panel_columns * element_bytes,
          .panel_step = panel_bytes(w.dtype, length),
          .row_unit_bytes = unit * (form == RowForm::wide ? static_cast<std::int64_t>(sizeof(float)) : element_bytes),
          .row_bytes = packed_row_bytes(form, length, element_bytes),
          .packed_rows = workspace,
          .first_row = first_row};
}

/// Packs bf16 rows [first, last) as pairs [k / 2][row][2].
inline void pack_pairs(const Rows& x, std::int64_t first, std::int64_t last, std::byte* packed) {
  constexpr std::int64_t chunk = 16, pair = 4;  // a cache line of a row; bytes
  const std::int64_t rows = last - first, whole = x.length() / 2;
  for (std::int64_t begin = 0; begin < whole; begin += chunk)
    for (std::int64_t r = 0; r < rows; ++r) {
      const std::byte* const from = x.row(first + r);
      for (std::int64_t p = begin; p < std::min(whole, begin + chunk); ++p)
        std::memcpy(packed + (p * rows + r) * pair, from + p * pair, pair);
    }
  if (x.length() % 2 == 0) return;
  for (std::int64_t r = 0; r < rows; ++r) {
    std::byte* const to = packed + (whole * rows + r) * pair;
    std::memset(to, 0, pair);
    std::memcpy(to, x.row(first + r) + whole * pair, pair / 2);
  }
}

inline void pack_rows(const Rows& rows, DType dtype, std::int64_t first, std::int64_t last, RowForm form,
                      std::byte* packed) {
  if (form == RowForm::parts) pack_parts(rows, first, last, packed);
  else if (form == RowForm::chunks) pack_chunks(rows, first, last, rows.length() * byte_size(dtype), packed);
  else if (form == RowForm::units) pack_pairs(rows, first, last, packed);
  else pack_block(rows, dtype, first, last, round_up(rows.length(), 2), reinterpret_cast<float*>(packed));
}

/// Packs blocks of rows of x, or of what comes before the product, which is made first, after the packed rows: `held`
/// of them from p.first_row on.
inline void pack_blocks(const LaunchArgs& args, const ProductBinding& binding, const RowBlocks& blocks,
                        std::int64_t held, std::int64_t length, const PackedProduct& p) {
  const std::int64_t count = blocks.last - blocks.first;
  if (!binding.prologue) {
    const TensorView x = binding.operands(args, 0);
    const Rows rows(x);
    return for_blocks(blocks, count * length, *args.pool, [&](std::int64_t first, std::int64_t last) {
      pack_rows(rows, x.dtype, first, last, p.form, p.packed(first));
    });
  }
  const TensorView made = binding.prologue.rows(held, length, p.packed_rows + round_up(held * p.row_bytes, 64));
  const Rows rows(made);
  if (binding.prologue.makes_all()) binding.prologue.make_all(args, made);
  for_blocks(blocks, 4 * count * length, *args.pool, [&](std::int64_t first, std::int64_t last) {
    if (!binding.prologue.makes_all()) binding.prologue.run(args, first, last, made, p.first_row);
    pack_rows(rows, made.dtype, first - p.first_row, last - p.first_row, p.form, p.packed(first));
  });
}

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
