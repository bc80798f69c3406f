// Products by AMX tiles whose reduction is too long for rows to stay in the second-level cache: include after
// <hwy/foreach_target.h>.
#if defined(CERMET_DEEP_PRODUCT_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CERMET_DEEP_PRODUCT_INL
#undef CERMET_DEEP_PRODUCT_INL
#else
#define CERMET_DEEP_PRODUCT_INL
#endif

#include "kernel/cpu/gemm/deep_product.hpp"
#include "kernel/cpu/gemm/packed_product-inl.hpp"
#include "kernel/cpu/shared_items.hpp"

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {

/// Blocks of rows and panels whose sums stay in the second-level cache together, slice by slice of the reduction.
struct DeepItem {
  std::int64_t first_block, last_block, first_panel, last_panel;
};

/// Multiplies an item; `sums` has room for its tiles. Calls finish(group of one block, panel, tile) for each as its
/// last slice is added.
template <class Finish>
void multiply_deep(const PackedProduct& p, const std::byte* panels, const RowBlocks& blocks, const DeepItem& item,
                   Tile* sums, const Finish& finish) {
  constexpr std::int64_t slice_units = deep_slice_bytes / 4;
  const std::int64_t block_count = item.last_block - item.first_block, panel_step = p.panel_step;
  const AmxTiles registers;
  for (std::int64_t unit = 0; unit < p.units; unit += slice_units) {
    const std::int64_t count = std::min(slice_units, p.units - unit);
    for (std::int64_t panel = item.first_panel; panel < item.last_panel; ++panel) {
      const std::byte* const slice = panels + panel * panel_step + unit * p.unit_bytes;
      const bool last_panel = panel + 1 == item.last_panel;
      const std::byte* const next =
          last_panel ? panels + item.first_panel * panel_step + (unit + count) * p.unit_bytes : slice + panel_step;
      for (std::int64_t b = item.first_block; b < item.last_block; ++b) {
        const BlockGroup block{blocks, b, 1};
        const std::int64_t rows = block.rows(0), share = b - item.first_block;
        const Ahead ahead = last_panel && unit + count >= p.units
                                ? Ahead::none()
                                : Ahead::of_next(next, count * p.unit_bytes, p.unit_bytes, share, block_count);
        Tile& tile = sums[(panel - item.first_panel) * deep_blocks + share];
        p.amx[rows - 1](p.packed(block.first(0)) + unit * p.row_unit_bytes * rows, slice, count, ahead, unit == 0,
                        tile);
        if (unit + count >= p.units) finish(block, panel, tile);
      }
    }
  }
}

/// A whole result of packed rows, on all threads; `memory` has deep_product_bytes.
template <class Finish>
void for_deep_product(const PackedProduct& p, const std::byte* panels, std::int64_t panel_total,
                      const RowBlocks& blocks, ThreadPool& pool, std::byte* memory, const Finish& finish) {
  const std::int64_t ranges = div_up(blocks.count(), deep_blocks), panel_items = div_up(panel_total, deep_panels);
  SharedItems shared(ranges * panel_items, pool.size());
  pool.run([&](int thread) {
    auto* const sums = reinterpret_cast<Tile*>(memory + thread * deep_product_bytes(1));
    for (std::int64_t i = shared.take(thread); i >= 0; i = shared.take(thread)) {
      const std::int64_t range = i / panel_items, item = i % panel_items;
      multiply_deep(p, panels, blocks,
                    {blocks.count() * range / ranges, blocks.count() * (range + 1) / ranges, item * deep_panels,
                     std::min(panel_total, (item + 1) * deep_panels)},
                    sums, finish);
    }
  });
}

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
