// The work of a product, shared among threads: include after <hwy/foreach_target.h>.
#if defined(CERMET_FOR_PRODUCT_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CERMET_FOR_PRODUCT_INL
#undef CERMET_FOR_PRODUCT_INL
#else
#define CERMET_FOR_PRODUCT_INL
#endif

#include "kernel/cpu/gemm/row_shares-inl.hpp"
#include "kernel/cpu/shared_items.hpp"

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {

/// Weights that stay in the second-level cache beside a few packed blocks of rows.
inline constexpr std::int64_t cached_weight_bytes = 640 << 10;

/// Threads take a few blocks of rows each, pack them and meet all panels: what is packed stays in their cache, where
/// all rows would not.
template <class GroupBody>
void for_cached_product(const TensorView& w, const LaunchArgs& args, const ProductBinding& binding,
                        const RowBlocks& blocks, const GroupBody& body) {
  const std::int64_t most_rows = group_blocks * most_rows_of(blocks.form);
  const TensorView x = binding.prologue ? TensorView() : binding.operands(args, 0);
  const std::int64_t panels = panel_count(w.shape[0]), groups = div_up(blocks.count(), group_blocks);
  SharedItems shared(groups, args.pool->size());
  args.pool->run([&](int thread) {
    for (std::int64_t i = shared.take(thread); i >= 0; i = shared.take(thread)) {
      const BlockGroup group{blocks, i * group_blocks, std::min(group_blocks, blocks.count() - i * group_blocks)};
      const std::int64_t first = group.first(0), last = group.first(group.count);
      PackedProduct product = make_product(w, blocks.form, args.workspace, first);
      TensorView made;
      if (binding.prologue) {
        made = binding.prologue.rows(args.pool->size() * most_rows, w.shape.back(),
                                     product.packed_rows + args.pool->size() * most_rows * product.row_bytes);
        made.data = made.as<std::byte>() + thread * most_rows * made.strides[0] * byte_size(made.dtype);
        made.shape[0] = last - first;
        binding.prologue.run(args, first, last, made, first);
      }
      const Rows rows(x.present ? x : made);
      const std::int64_t base = x.present ? 0 : first;
      product.packed_rows += thread * most_rows * product.row_bytes;
      for (std::int64_t b = 0; b < group.count; ++b)
        pack_rows(rows, x.present ? x.dtype : made.dtype, group.first(b) - base, group.first(b + 1) - base, blocks.form,
                  product.packed(group.first(b)));
      for (std::int64_t panel = 0; panel < panels; ++panel) body(product, group, panel);
    }
  });
}

/// Packs rows, at most packed_row_limit at a time, and calls body(product, group, panel) over the whole result.
template <class GroupBody>
void for_product(const LaunchArgs& args, const ProductBinding& binding, const TensorView& w, std::int64_t weights,
                 RowForm form, GroupBody&& body) {
  const std::int64_t rows = Rows(args.outputs[binding.result]).count();
  const bool cached = panel_count(w.shape[0]) * panel_bytes(w.dtype, w.shape[1]) * weights <= cached_weight_bytes;
  const std::int64_t together = group_blocks * most_rows_of(form) * args.pool->size();
  if (cached && rows >= 8 * together && together <= packed_row_limit)
    return for_cached_product(w, args, binding, {0, rows, form}, body);
  for (std::int64_t first = 0; first < rows; first += packed_row_limit) {
    const RowBlocks blocks{first, std::min(rows, first + packed_row_limit), form};
    if (binding.cut.row_shares && !binding.prologue.makes_all() &&
        goes_by_row_shares(blocks.last - blocks.first, form, args.pool->size())) {
      for_row_shares(args, binding, w, blocks, body);
      continue;
    }
    const PackedProduct product = make_product(w, blocks.form, args.workspace, first);
    pack_blocks(args, binding, blocks, blocks.last - blocks.first, w.shape.back(), product);
    for_tiles(blocks, panel_count(w.shape[0]), panel_bytes(w.dtype, w.shape[1]) * weights, *args.pool, binding.cut,
              [&](const BlockGroup& group, std::int64_t panel) { body(product, group, panel); });
  }
}

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
