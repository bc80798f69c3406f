// Products whose rows are shared out among threads: include after <hwy/foreach_target.h>.
#if defined(CERMET_ROW_SHARES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CERMET_ROW_SHARES_INL
#undef CERMET_ROW_SHARES_INL
#else
#define CERMET_ROW_SHARES_INL
#endif

#include <array>

#include "kernel/cpu/gemm/product_rows-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {

/// Threads take a share of the rows each, which they pack and multiply with all panels; who is done helps with panels
/// of other shares. So rows stay in the caches of one core, from the product that stores them to the one that packs
/// them, and nothing waits between packing and multiplying. Every thread reads the whole weight, which a few blocks of
/// rows hide.
class RowShares {
 public:
  static constexpr int most_shares = 32;

  RowShares(const RowBlocks& all, int count) : all_(all), count_(count) {}
  int count() const { return count_; }
  RowBlocks blocks(int share) const {
    return {all_.first + rows() * share / count_, all_.first + rows() * (share + 1) / count_, all_.form};
  }

  void set_packed(int share) { state(share).packed.store(true, std::memory_order_release); }
  bool is_packed(int share) { return state(share).packed.load(std::memory_order_acquire); }
  /// The first of `count` panels that no thread has taken for a share.
  std::int64_t take(int share, std::int64_t count) {
    return state(share).next.fetch_add(count, std::memory_order_relaxed);
  }

 private:
  struct alignas(64) State {
    std::atomic<std::int64_t> next{0};
    std::atomic<bool> packed{false};
  };
  std::int64_t rows() const { return all_.last - all_.first; }
  State& state(int share) { return states_[static_cast<std::size_t>(share)]; }

  RowBlocks all_;
  int count_;
  std::array<State, most_shares> states_;
};

/// Whether each of several threads has rows enough to hide the time that panels take to come from memory.
inline bool goes_by_row_shares(std::int64_t rows, RowForm form, int threads) {
  return threads > 1 && threads <= RowShares::most_shares && rows >= threads * group_blocks * most_rows_of(form);
}

/// Rows that a thread multiplies with a panel.
inline std::int64_t rows_of_thread(std::int64_t rows, RowForm form, int threads) {
  rows = std::min(rows, packed_row_limit);
  return goes_by_row_shares(rows, form, threads) ? div_up(rows, threads) : rows;
}

/// Calls body(product, group, panel) for all blocks of rows and panels [first, last), which take the bytes of the
/// product's cut or are one.
template <class GroupBody>
void for_panels(const PackedProduct& product, const RowBlocks& blocks, std::int64_t first, std::int64_t last,
                const GroupBody& body) {
  NextPanels next{0, last - first, 0, blocks.count() * (last - first)};
  for (std::int64_t b = 0; b < blocks.count(); b += group_blocks) {
    const std::int64_t count = std::min(group_blocks, blocks.count() - b);
    for (std::int64_t panel = first; panel < last; ++panel) {
      next.distance = last - panel;
      body(product, BlockGroup{blocks, b, count, next}, panel);
      next.share += count;
    }
  }
}

/// Calls body(product, group, panel) over the whole result, on all threads.
template <class GroupBody>
void for_row_shares(const LaunchArgs& args, const ProductBinding& binding, const TensorView& w, const RowBlocks& all,
                    const GroupBody& body) {
  const std::int64_t length = w.shape.back(), panels = panel_count(w.shape[0]), all_rows = all.last - all.first;
  const std::int64_t item_panels = std::max<std::int64_t>(
      1, bytes_together(binding.cut, all.form) / std::max<std::int64_t>(1, panel_bytes(w.dtype, length)));
  const PackedProduct product = make_product(w, all.form, args.workspace, all.first);
  const TensorView made =
      binding.prologue
          ? binding.prologue.rows(all_rows, length, product.packed_rows + round_up(all_rows * product.row_bytes, 64))
          : TensorView();
  const TensorView x = binding.prologue ? made : binding.operands(args, 0);
  const std::int64_t base = binding.prologue ? all.first : 0;
  const auto pack = [&](const RowBlocks& blocks) {
    const Rows rows(x);
    for (std::int64_t b = 0; b < blocks.count(); ++b) {
      const std::int64_t first = blocks.begin(b), last = blocks.begin(b + 1);
      if (binding.prologue) binding.prologue.run(args, first, last, made, base);
      pack_rows(rows, x.dtype, first - base, last - base, all.form, product.packed(first));
    }
  };
  RowShares shares(all, args.pool->size());
  args.pool->run([&](int thread) {
    pack(shares.blocks(thread));
    shares.set_packed(thread);
    for (int tried = 0; tried < shares.count(); ++tried) {
      const int share = (thread + tried) % shares.count();
      if (!shares.is_packed(share)) continue;
      const RowBlocks blocks = shares.blocks(share);
      for (std::int64_t first = shares.take(share, item_panels); first < panels;
           first = shares.take(share, item_panels))
        for_panels(product, blocks, first, std::min(panels, first + item_panels), body);
    }
  });
}

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
