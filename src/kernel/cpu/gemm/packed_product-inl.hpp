// Packed rows times packed panels, and what follows the sums: include after <hwy/foreach_target.h>.
#if defined(CERMET_PACKED_PRODUCT_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CERMET_PACKED_PRODUCT_INL
#undef CERMET_PACKED_PRODUCT_INL
#else
#define CERMET_PACKED_PRODUCT_INL
#endif

#include <array>

#include "kernel/cpu/gemm/tiles-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {

/// Packed rows, and how they are multiplied with panels of some type.
struct PackedProduct {
  RowForm form;
  const MultiplyPanel* multiply;  ///< element r - 1 takes blocks of r rows; of wide rows and of units
  const AmxProduct* amx;          ///< the same of chunks
  std::int64_t units;             ///< of a panel
  std::int64_t unit_bytes;        ///< of a panel
  std::int64_t panel_step;        ///< bytes from one panel to the next
  std::int64_t row_unit_bytes;    ///< of one packed row
  std::int64_t row_bytes;         ///< of one packed row, padding included
  std::byte* packed_rows;         ///< block of rows [begin, end) at (begin - first_row) * row_bytes
  std::int64_t first_row;
  std::byte* packed(std::int64_t row) const { return packed_rows + (row - first_row) * row_bytes; }
};

/// Part of a panel that stays in the second-level cache, beside the rows that it meets there.
inline constexpr std::int64_t slice_bytes = 128 << 10;

/// What block i of a group asks for while it multiplies units [unit, unit + count) of a panel.
inline Ahead ahead_of(const PackedProduct& p, const std::byte* panel, const BlockGroup& group, std::int64_t i,
                      std::int64_t unit, std::int64_t count) {
  if (const NextPanels& next = group.next; next.shares > 0) {
    Ahead ahead = Ahead::of_next(panel + next.distance * p.panel_step, next.count * p.panel_step,
                                 next.count * p.unit_bytes, next.share + i, next.shares);
    ahead.at += unit * ahead.step;
    return ahead;
  }
  if (!group.streams()) return Ahead::none();
  const std::byte* const slice = panel + unit * p.unit_bytes;
  return group.count == 1 ? Ahead::of_stream(slice, p.unit_bytes)
                          : Ahead::of_share(slice, count * p.unit_bytes, p.unit_bytes, i, group.count);
}

/// tiles[i] = the product of block i of a group with the panel at `panel`: slice by slice, each taken by all blocks in
/// turn.
inline void multiply_group(const PackedProduct& p, const std::byte* panel, const BlockGroup& group, Tile* tiles) {
  for (std::int64_t i = 0; i < group.count; ++i) std::fill_n(tiles[i], group.rows(i) * panel_columns, 0.0f);
  const std::int64_t most = slice_bytes / p.unit_bytes;
  for (std::int64_t unit = 0; unit < p.units; unit += most) {
    const std::int64_t count = std::min(most, p.units - unit);
    const std::byte* const slice = panel + unit * p.unit_bytes;
    for (std::int64_t i = 0; i < group.count; ++i) {
      const std::int64_t rows = group.rows(i);
      p.multiply[rows - 1](p.packed(group.first(i)) + unit * p.row_unit_bytes * rows, slice, count,
                           ahead_of(p, panel, group, i, unit, count), tiles[i]);
    }
  }
}

/// tile = the product of block i of a group with a whole panel, by tile registers.
inline void multiply_chunks(const PackedProduct& p, const std::byte* panel, const BlockGroup& group, std::int64_t i,
                            Tile& tile) {
  p.amx[group.rows(i) - 1](p.packed(group.first(i)), panel, p.units, ahead_of(p, panel, group, i, 0, p.units), true,
                           tile);
}

/// Calls finish(i, tiles) for each block i of a group with its products with each of some panels.
template <std::size_t count, class Finish>
void multiply_panels(const PackedProduct& p, const std::array<const std::byte*, count>& panels, const BlockGroup& group,
                     Finish&& finish) {
  if (p.form ==
      RowForm::chunks) {  // sums stay in registers, and what follows them takes them from the first-level cache
    alignas(64) Tile tiles[count];
    const AmxTiles registers;
    for (std::int64_t i = 0; i < group.count; ++i) {
      for (std::size_t w = 0; w < count; ++w) multiply_chunks(p, panels[w], group, i, tiles[w]);
      finish(i, [&](std::size_t w) -> const float* { return tiles[w]; });
    }
    return;
  }
  alignas(64) Tile tiles[count][group_blocks];
  for (std::size_t w = 0; w < count; ++w) multiply_group(p, panels[w], group, tiles[w]);
  for (std::int64_t i = 0; i < group.count; ++i) finish(i, [&](std::size_t w) -> const float* { return tiles[w][i]; });
}

/// Rows that a tile program takes at a time.
inline constexpr std::int64_t epilogue_rows = BoundTileProgram::most_values / panel_columns;

/// Runs what follows the sums of block i of a group: its tile in `sums`, and that of a second weight in `more`.
inline void finish_block(const TileRun& epilogue, const BlockGroup& group, std::int64_t i, std::int64_t panel,
                         std::int64_t columns, const float* sums, const float* more = nullptr,
                         std::int64_t of_group = 0) {
  const std::int64_t column = panel * panel_columns;
  for (std::int64_t r = 0; r < group.rows(i); r += epilogue_rows) {
    const TileOperand inputs[] = {{sums + r * panel_columns, panel_columns, 1},
                                  {more ? more + r * panel_columns : nullptr, panel_columns, 1}};
    epilogue(inputs, {group.first(i) + r, std::min(epilogue_rows, group.rows(i) - r), column,
                      std::min(panel_columns, columns - column), of_group});
  }
}

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
