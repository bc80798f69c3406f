// What every product over packed panels shares around its inner loop (float.hpp, bf16.hpp, amx.hpp): rows packed in
// blocks, the result cut into items for threads. Include after <hwy/foreach_target.h>.
#if defined(CERMET_GEMM_TILES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CERMET_GEMM_TILES_INL
#undef CERMET_GEMM_TILES_INL
#else
#define CERMET_GEMM_TILES_INL
#endif

#include <algorithm>
#include <cstring>

#include "kernel/cpu/amx.hpp"
#include "kernel/cpu/gemm/amx.hpp"
#include "kernel/cpu/gemm/binding.hpp"
#include "kernel/cpu/gemm/block_rows-inl.hpp"
#include "kernel/cpu/gemm/float.hpp"
#include "kernel/cpu/gemm/panel_loops-inl.hpp"
#include "kernel/cpu/gemm/panels.hpp"
#include "kernel/cpu/gemm/row_form.hpp"
#include "kernel/cpu/vec-inl.hpp"
#include "kernel/kernel.hpp"
#include "op/products.hpp"

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {

/// Results of one block of rows and one panel, [rows][32].
using Tile = float[std::max(block_rows, HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86 ? amx_block_rows : 0) * panel_columns];

/// Most rows of a block.
constexpr int most_rows_of(RowForm form) {
  return form == RowForm::chunks || form == RowForm::parts ? amx_block_rows : block_rows;
}

/// Rows [first, last) in blocks, as even as possible; those for tile registers fill them but for the last, those of
/// parts two or three.
struct RowBlocks {
  std::int64_t first, last;
  RowForm form = RowForm::wide;
  std::int64_t count() const {
    return form == RowForm::parts ? std::max<std::int64_t>(1, steps() / 2)
                                  : div_up(steps(), most_rows_of(form) / step());
  }
  std::int64_t begin(std::int64_t block) const { return std::min(last, first + steps() * block / count() * step()); }

 private:
  std::int64_t step() const { return form == RowForm::chunks || form == RowForm::parts ? amx_rows : 1; }
  std::int64_t steps() const { return div_up(last - first, step()); }
};

template <class T>
HWY_INLINE void widen_vectors(const T* from, std::int64_t count, float* to) {
  for_vectors(static_cast<std::size_t>(count),
              [&](std::size_t i, std::size_t n) HWY_ATTR { store_n(load_n(from + i, n), to + i, n); });
}

/// Elements [first, first + count) of a row of any type that products take, as float32.
inline void widen(const std::byte* row, DType dtype, std::int64_t first, std::int64_t count, float* to) {
  switch (dtype) {
    case DType::f32: return widen_vectors(reinterpret_cast<const float*>(row) + first, count, to);
    case DType::bf16: return widen_vectors(reinterpret_cast<const format::bf16*>(row) + first, count, to);
    case DType::f16: return widen_vectors(reinterpret_cast<const format::f16*>(row) + first, count, to);
    case DType::i8:
      for (std::int64_t i = 0; i < count; ++i)
        to[i] = static_cast<float>(reinterpret_cast<const std::int8_t*>(row)[first + i]);
      return;
    default: {
      const float* const values = fp8_values(dtype);
      for (std::int64_t i = 0; i < count; ++i) to[i] = values[reinterpret_cast<const std::uint8_t*>(row)[first + i]];
    }
  }
}

/// to[k * step + r] = from[r][k] for four rows: 4 x 4 elements at a time, which take 8 shuffles and 4 stores in place
/// of 16 stores.
inline void interleave_rows(const float* const* from, std::int64_t count, std::int64_t step, float* to) {
  std::int64_t k = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::FixedTag<float, 4> d;
  for (; k + 4 <= count; k += 4) {
    const auto a = hn::LoadU(d, from[0] + k), b = hn::LoadU(d, from[1] + k), c = hn::LoadU(d, from[2] + k),
               e = hn::LoadU(d, from[3] + k);
    const auto ac = hn::InterleaveLower(d, a, c), be = hn::InterleaveLower(d, b, e);
    const auto upper_ac = hn::InterleaveUpper(d, a, c), upper_be = hn::InterleaveUpper(d, b, e);
    hn::StoreU(hn::InterleaveLower(d, ac, be), d, to + k * step);
    hn::StoreU(hn::InterleaveUpper(d, ac, be), d, to + (k + 1) * step);
    hn::StoreU(hn::InterleaveLower(d, upper_ac, upper_be), d, to + (k + 2) * step);
    hn::StoreU(hn::InterleaveUpper(d, upper_ac, upper_be), d, to + (k + 3) * step);
  }
#endif
  for (; k < count; ++k)
    for (int r = 0; r < 4; ++r) to[k * step + r] = from[r][k];
}

/// Packs rows [first, last) of x as float32 [k][row], k padded with zeros to `length`.
inline void pack_block(const Rows& x, DType dtype, std::int64_t first, std::int64_t last, std::int64_t length,
                       float* packed) {
  constexpr std::int64_t chunk = 64, together = 4;
  const std::int64_t rows = last - first;
  std::fill(packed + x.length() * rows, packed + length * rows, 0.0f);
  if (rows == 1) return widen(x.row(first), dtype, 0, x.length(), packed);
  alignas(64) float wide[together][chunk];
  for (std::int64_t k = 0; k < x.length(); k += chunk) {
    const std::int64_t count = std::min(chunk, x.length() - k);
    for (std::int64_t next = 0; next < rows; next += together) {
      const std::int64_t begin =
          std::max<std::int64_t>(0, std::min(next, rows - together));  // the last four rows may overlap the ones before
      const float* from[together];
      for (std::int64_t r = 0; r < std::min(rows, together); ++r) {
        const std::byte* const row = x.row(first + begin + r);
        from[r] = dtype == DType::f32 ? reinterpret_cast<const float*>(row) + k : wide[r];
        if (dtype != DType::f32) widen(row, dtype, k, count, wide[r]);
        else if (k + chunk < x.length())  // short pieces of many rows: the hardware prefetcher does not catch them
          for (std::int64_t ahead = chunk; ahead < 2 * chunk; ahead += 16) __builtin_prefetch(from[r] + ahead, 0, 2);
      }
      float* const to = packed + k * rows + begin;
      if (rows >= together) {
        interleave_rows(from, count, rows, to);
        continue;
      }
      for (std::int64_t i = 0; i < count; ++i)
        for (std::int64_t r = 0; r < rows; ++r) to[i * rows + r] = from[r][i];
    }
  }
}

/// Packs rows of `row_bytes` bytes, row(r) for r < rows, as [chunk][row][64 bytes], padded with zeros.
template <class Row>
void pack_chunks(std::int64_t rows, std::int64_t row_bytes, std::byte* packed, Row&& row) {
  constexpr std::int64_t together = 4;  // chunks of a row
  const std::int64_t whole = row_bytes / chunk_bytes, tail = row_bytes % chunk_bytes;
  const auto at = [&](std::int64_t chunk, std::int64_t r) { return packed + (chunk * rows + r) * chunk_bytes; };
  for (std::int64_t begin = 0; begin < whole; begin += together)
    for (std::int64_t r = 0; r < rows; ++r) {
      const std::byte* const from = row(r);
      for (std::int64_t c = begin; c < std::min(whole, begin + together); ++c)
        std::memcpy(at(c, r), from + c * chunk_bytes, chunk_bytes);
    }
  for (std::int64_t r = 0; tail > 0 && r < rows; ++r) {
    std::memset(at(whole, r), 0, chunk_bytes);
    std::memcpy(at(whole, r), row(r) + whole * chunk_bytes, static_cast<std::size_t>(tail));
  }
}

/// The same of rows [first, last) of x.
inline void pack_chunks(const Rows& x, std::int64_t first, std::int64_t last, std::int64_t row_bytes,
                        std::byte* packed) {
  pack_chunks(last - first, row_bytes, packed, [&](std::int64_t r) { return x.row(first + r); });
}

/// Elements that take a few microseconds to pack.
inline constexpr std::int64_t worth_threads = 1 << 15;

/// Calls pack(first, last) for every block, on several threads where there is enough to do. `work` counts elements.
template <class Pack>
void for_blocks(const RowBlocks& blocks, std::int64_t work, ThreadPool& pool, Pack&& pack) {
  const auto run = [&](std::int64_t b) { pack(blocks.begin(b), blocks.begin(b + 1)); };
  if (work >= worth_threads) return pool.dynamic_for(blocks.count(), run);
  for (std::int64_t b = 0; b < blocks.count(); ++b) run(b);
}

/// How the result is cut into items that threads take one by one: a range of panels times a range of row blocks.
struct Items {
  std::int64_t panels, blocks;            ///< all of them
  std::int64_t item_panels, item_blocks;  ///< of one item; the last ones may have fewer
  std::int64_t panel_items() const { return div_up(panels, item_panels); }
  std::int64_t count() const { return panels == 0 || blocks == 0 ? 0 : panel_items() * div_up(blocks, item_blocks); }
};

/// Bytes of panels that several blocks of rows use in turn. Products by tiles take one panel, because rows, of which
/// there are more in an item, want the cache for themselves.
inline std::int64_t bytes_together(const ProductCut& by, RowForm form) {
  return form == RowForm::chunks ? 0 : by.panel_bytes;
}

/// Items whose panels take `bytes` or are one; smaller where there would be fewer than four for each thread.
inline Items cut(std::int64_t panels, std::int64_t blocks, std::int64_t panel_step, int threads,
                 std::int64_t bytes = ProductCut::usual_panel_bytes) {
  const std::int64_t wanted = threads == 1 ? 1 : 4 * threads;
  Items items{panels, blocks, std::max<std::int64_t>(1, bytes / std::max<std::int64_t>(1, panel_step)), blocks};
  items.item_panels = std::min(items.item_panels, std::max<std::int64_t>(1, panels / wanted));
  if (blocks > 0 && items.count() < wanted)
    items.item_blocks =
        std::max<std::int64_t>(1, div_up(blocks, div_up(wanted, std::max<std::int64_t>(1, items.panel_items()))));
  return items;
}

/// Most blocks of rows that take a slice of a panel one after the other.
inline constexpr std::int64_t group_blocks = 4;

/// Panels that the thread takes next, which blocks of rows ask memory for while they multiply the ones before.
struct NextPanels {
  std::int64_t distance = 0, count = 0;  ///< from the present panel to the first of them; how many they are
  std::int64_t share = 0, shares = 0;    ///< of them, for the first block of a group; 0: nothing is asked for
};

/// Neighbouring blocks of rows that are multiplied with a panel together.
struct BlockGroup {
  const RowBlocks& blocks;
  std::int64_t first_block, count;
  NextPanels next = {};
  std::int64_t first(std::int64_t i) const { return blocks.begin(first_block + i); }
  std::int64_t rows(std::int64_t i) const { return first(i + 1) - first(i); }
  /// Whether no other rows use the panel, so that it comes from memory.
  bool streams() const { return count == blocks.count(); }
};

/// Calls body(group, panel) for blocks [first_block, last_block) in groups.
template <class GroupBody>
void for_block_groups(const RowBlocks& blocks, std::int64_t first_block, std::int64_t last_block,
                      std::int64_t first_panel, std::int64_t last_panel, GroupBody&& body) {
  for (std::int64_t b = first_block; b < last_block; b += group_blocks) {
    const BlockGroup group{blocks, b, std::min(group_blocks, last_block - b)};
    for (std::int64_t panel = first_panel; panel < last_panel; ++panel) body(group, panel);
  }
}

/// Calls body(group, panel) for every group of blocks and panel of an item.
template <class GroupBody>
void for_item(const Items& items, std::int64_t item, const RowBlocks& blocks, GroupBody&& body) {
  const std::int64_t first_panel = item % items.panel_items() * items.item_panels,
                     last_panel = std::min(items.panels, first_panel + items.item_panels);
  const std::int64_t first_block = item / items.panel_items() * items.item_blocks,
                     last_block = std::min(items.blocks, first_block + items.item_blocks);
  for_block_groups(blocks, first_block, last_block, first_panel, last_panel, body);
}

/// Calls body(group, panel) over a whole result, on all threads.
template <class GroupBody>
void for_tiles(const RowBlocks& blocks, std::int64_t panels, std::int64_t panel_step, ThreadPool& pool,
               const ProductCut& by, GroupBody&& body) {
  if (blocks.count() <= group_blocks)
    return parts_for(pool, panels, [&](std::int64_t begin, std::int64_t end) {
      for_block_groups(blocks, 0, blocks.count(), begin, end, body);
    });
  const Items items = cut(panels, blocks.count(), panel_step, pool.size(), bytes_together(by, blocks.form));
  pool.dynamic_for(items.count(), [&](std::int64_t item) { for_item(items, item, blocks, body); });
}

/// Slice `index` of an operand's first dimension, with one dimension fewer; nothing of one that is not given.
inline TensorView slice_of(const TensorView& all, std::int64_t index) {
  if (!all.present) return {};
  TensorView slice(all.as<std::byte>() + index * all.strides[0] * byte_size(all.dtype), all.dtype, {}, {});
  for (int axis = 1; axis < all.shape.rank(); ++axis)
    slice.shape.push_back(all.shape[axis]), slice.strides.push_back(all.strides[axis]);
  return slice;
}

/// Rows sorted by group, of which some have none; a last one may have no weight.
struct Groups {
  const TensorView& offsets;
  std::int64_t count;    ///< of groups with a weight
  std::int64_t* active;  ///< those that have rows
  std::int64_t active_count = 0;
  RowForm form;

  /// Checks the offsets; `workspace` has group_workspace_bytes.
  Groups(const TensorView& group_offsets, std::int64_t groups, std::int64_t row_count, std::byte* workspace,
         RowForm row_form = RowForm::wide)
      : offsets(group_offsets), count(groups), active(reinterpret_cast<std::int64_t*>(workspace)), form(row_form) {
    check_group_offsets("grouped_linear", offsets, row_count);
    for (std::int64_t e = 0; e < count; ++e)
      if (load_index(offsets, e) < load_index(offsets, e + 1)) active[active_count++] = e;
  }
  RowBlocks rows(std::int64_t group) const {
    return {load_index(offsets, group), load_index(offsets, group + 1), form};
  }
  /// Rows of the group without a weight.
  RowBlocks unweighted_rows() const {
    return {load_index(offsets, count), load_index(offsets, offsets.elements() - 1), form};
  }
};

/// Calls finish(block_group, i, panel, sums) for each block of rows that have no weight, whose sums are 0.
template <class Finish>
void for_unweighted_rows(const Groups& groups, std::int64_t panels, ThreadPool& pool, Finish&& finish) {
  const RowBlocks rows = groups.unweighted_rows();
  if (rows.first == rows.last) return;
  pool.parallel_for(panels, 1, [&](std::int64_t begin, std::int64_t end) {
    alignas(64) static constexpr Tile nothing{};
    for_block_groups(rows, 0, rows.count(), begin, end, [&](const BlockGroup& group, std::int64_t panel) {
      for (std::int64_t i = 0; i < group.count; ++i) finish(group, i, panel, nothing);
    });
  });
}

/// Calls body(e, block_group, panel) over the results of all groups e that have rows, spread over threads together.
template <class GroupBody>
void for_groups(const Groups& groups, std::int64_t panels, std::int64_t panel_step, ThreadPool& pool,
                const ProductCut& by, GroupBody&& body) {
  const bool streams = std::all_of(groups.active, groups.active + groups.active_count,
                                   [&](std::int64_t e) { return groups.rows(e).count() <= group_blocks; });
  const std::int64_t total = groups.active_count * panels,
                     longest = div_up(by.panel_bytes, std::max<std::int64_t>(1, panel_step));
  const auto run_panels = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t run = begin; run < end;) {  // panels of one group
      const std::int64_t index = run / panels, run_end = std::min(end, (index + 1) * panels);
      const RowBlocks blocks = groups.rows(groups.active[index]);
      for_block_groups(blocks, 0, blocks.count(), run - index * panels, run_end - index * panels,
                       [&](const BlockGroup& group, std::int64_t panel) { body(groups.active[index], group, panel); });
      run = run_end;
    }
  };
  if (streams) parts_for(pool, total, run_panels);
  else guided_for(pool, total, longest, run_panels);
}

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
