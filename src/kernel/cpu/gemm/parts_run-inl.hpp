// What a product of parts is cut into, and in which order a thread takes it: include after <hwy/foreach_target.h>.
#if defined(CERMET_PARTS_RUN_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CERMET_PARTS_RUN_INL
#undef CERMET_PARTS_RUN_INL
#else
#define CERMET_PARTS_RUN_INL
#endif

#include "kernel/cpu/gemm/linear_parts.hpp"
#include "kernel/cpu/gemm/packed_product-inl.hpp"
#include "kernel/cpu/gemm/parts.hpp"
#include "kernel/cpu/shared_items.hpp"

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {

/// A slice of a panel that an item's rows meet.
struct SliceStep {
  std::int64_t item = -1, group = 0, panel = 0,
               first = 0;  ///< the group of panels of the item, the panel of the group, the first step of the reduction
  bool begins_item() const { return group == 0 && panel == 0 && first == 0; }
};

/// A product cut into items for threads: ranges of blocks of rows, with one group of panels each or with all of them.
class PartsRun {
 public:
  /// `own_rows`: a thread packs the rows of an item for itself, which then meet all panels.
  PartsRun(const RowBlocks& blocks, const TensorView& w, bool own_rows, int threads)
      : blocks_(blocks),
        w_(w),
        panel_step_(panel_bytes(w.dtype, w.shape[1])),
        panels_(panel_count(w.shape[0])),
        length_(w.shape[1]),
        ranges_(own_rows ? std::max<std::int64_t>(threads, div_up(blocks.count(), own_blocks))
                         : div_up(blocks.count(), parts_blocks)) {
    const std::int64_t wanted = threads == 1 ? 1 : 2 * threads;  // items
    if (!own_rows && panels_ < 2 * wanted)
      ranges_ = std::clamp<std::int64_t>(div_up(2 * wanted, panels_), ranges_, std::max(ranges_, blocks.count() / 2));
    const std::int64_t rows = div_up(blocks.last - blocks.first, ranges_);
    if (rows * packed_row_bytes(RowForm::parts, length_, 2) > parts_cached_rows)
      group_panels_ = std::clamp<std::int64_t>(panels_ * ranges_ / wanted, 1, parts_panels);
    groups_ = div_up(panels_, group_panels_);
    item_groups_ = own_rows ? groups_ : 1;
  }
  std::int64_t items() const { return ranges_ * (groups_ / item_groups_); }

  /// Multiplies the items that one thread takes. Calls begin(first block, last block of an item), which returns its
  /// packed rows, and finish(block of rows as a group, panel, sums).
  template <class Begin, class Finish>
  void run(SharedItems& shared, int thread, std::byte* memory, const Begin& begin, const Finish& finish) const {
    std::byte* slices[] = {memory + parts_sums_bytes, memory + parts_sums_bytes + parts_slice_bytes};
    const AmxTiles registers;
    SliceStep now{.item = shared.take(thread)};
    if (now.item < 0) return;
    PanelParts parts = parts_of(now, slices[0]);
    split_remaining(parts);
    PackedProduct product{};
    while (now.item >= 0) {
      if (now.begins_item()) product = begin(first_block(now.item), first_block(now.item, 1));
      const SliceStep next = after(now, shared, thread);
      parts = next.item >= 0 ? parts_of(next, slices[1]) : PanelParts();
      multiply(product, now, slices[0], parts, reinterpret_cast<float*>(memory), finish);
      split_remaining(parts);
      now = next;
      std::swap(slices[0], slices[1]);
    }
  }

 private:
  std::int64_t first_block(std::int64_t item, std::int64_t more = 0) const {
    return blocks_.count() * (item % ranges_ + more) / ranges_;
  }
  std::int64_t first_panel(const SliceStep& step) const { return (step.item / ranges_ + step.group) * group_panels_; }

  PanelParts parts_of(const SliceStep& step, std::byte* to) const {
    const auto* const panel =
        reinterpret_cast<const float*>(w_.as<const std::byte>() + (first_panel(step) + step.panel) * panel_step_);
    return {panel + step.first * panel_columns, std::min(parts_slice, length_ - step.first), to};
  }
  /// What the thread does next: the other panels of a group with the same steps, the next steps, the next group,
  /// another item.
  SliceStep after(SliceStep step, SharedItems& shared, int thread) const {
    if (++step.panel < std::min(group_panels_, panels_ - first_panel(step))) return step;
    step.panel = 0;
    if ((step.first += parts_slice) < length_) return step;
    step.first = 0;
    return ++step.group < item_groups_ ? step : SliceStep{.item = shared.take(thread)};
  }

  template <class Finish>
  void multiply(const PackedProduct& product, const SliceStep& step, const std::byte* slice, PanelParts& next,
                float* sums, const Finish& finish) const {
    const std::int64_t begin = first_block(step.item), end = first_block(step.item, 1);
    const std::int64_t steps = std::min(parts_slice, length_ - step.first), chunks = div_up(steps, parts_steps);
    const std::int64_t share = div_up(next.pairs, chunks * (end - begin));
    float* at = sums + step.panel * rows_of_parts(parts_blocks) * panel_columns;
    for (std::int64_t b = begin; b < end; ++b) {
      const BlockGroup block{blocks_, b, 1};
      const std::int64_t rows = block.rows(0), tiles = div_up(rows, amx_rows);
      const std::byte* const packed =
          product.packed(block.first(0)) + step.first / parts_steps * parts_row_bytes * rows;
      parts_product(tiles)(packed, rows, slice, chunks, step.first == 0, next, share, at);
      if (step.first + steps == length_) finish(block, first_panel(step) + step.panel, at);
      at += tiles * amx_rows * panel_columns;
    }
  }

  const RowBlocks& blocks_;
  const TensorView& w_;
  std::int64_t panel_step_, panels_, length_, ranges_, group_panels_ = 1, groups_, item_groups_;
};

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
