// linear of float32 by AMX tiles, over the panels that float32 products have: they are split into parts slice by slice while the slice before is multiplied.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/gemm/linear_parts.cpp"
#include <hwy/foreach_target.h>

#include "kernel/cpu/gemm/parts.hpp"
#include "kernel/cpu/gemm/product_rows-inl.hpp"
#include "kernel/cpu/limits.hpp"
#include "kernel/cpu/shared_items.hpp"
#include "kernel/roofline.hpp"

#ifndef CERMET_LINEAR_PARTS_ONCE
#define CERMET_LINEAR_PARTS_ONCE
namespace cermet::cpu {

/// Steps of the reduction in a slice: its parts take 48 KiB, twice, and 256 packed rows of it 384 KiB, which the second-level cache holds together.
inline constexpr std::int64_t parts_slice = 256;
/// Blocks of rows and panels of an item at most. Several panels where rows leave the cache between panels.
inline constexpr std::int64_t parts_blocks = 8, parts_panels = 6;
inline constexpr std::int64_t parts_item_rows = (2 * parts_blocks + 1) * 16;
inline constexpr std::int64_t parts_cached_rows = 896 << 10;

/// What each thread has: the sums of an item, and two slices in parts.
inline constexpr std::int64_t parts_sums_bytes = parts_panels * parts_item_rows * panel_columns * 4, parts_slice_bytes = parts_slice / parts_steps * parts_panel_bytes,
                              parts_thread_bytes = parts_sums_bytes + 2 * parts_slice_bytes;

/// Pieces that rows are packed in, which bounds workspace; all but the last are whole tiles.
inline std::int64_t parts_piece(std::int64_t rows) { return round_up(div_up(rows, div_up(rows, packed_row_limit)), 16); }

}  // namespace cermet::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {
namespace {

/// A slice of a panel that an item's rows meet.
struct SliceStep {
  std::int64_t item = -1, panel = 0, first = 0;  ///< the panel counts from the item's first; the first step of the reduction
};

/// A product of packed rows, cut into items for threads.
class PartsRun {
 public:
  PartsRun(const PackedProduct& product, const RowBlocks& blocks, const TensorView& w, int threads)
      : product_(product), blocks_(blocks), w_(w), panels_(panel_count(w.shape[0])), length_(w.shape[1]), ranges_(div_up(blocks.count(), parts_blocks)) {
    const bool cached = (blocks.last - blocks.first) * product.row_bytes <= parts_cached_rows * ranges_;
    const std::int64_t wanted = threads == 1 ? 1 : 2 * threads;  // items
    if (!cached) item_panels_ = std::clamp<std::int64_t>(panels_ * ranges_ / wanted, 1, parts_panels);
  }
  std::int64_t items() const { return ranges_ * div_up(panels_, item_panels_); }

  /// Multiplies the items that one thread takes. Calls finish(block of rows as a group, panel, sums).
  template <class Finish>
  void run(SharedItems& shared, int thread, std::byte* memory, const Finish& finish) const {
    auto* const sums = reinterpret_cast<float*>(memory);
    std::byte* slices[] = {memory + parts_sums_bytes, memory + parts_sums_bytes + parts_slice_bytes};
    const AmxTiles registers;
    SliceStep now{.item = shared.take(thread)};
    if (now.item < 0) return;
    PanelParts parts = parts_of(now, slices[0]);
    split_rest(parts);
    while (now.item >= 0) {
      const SliceStep next = after(now, shared, thread);
      parts = next.item >= 0 ? parts_of(next, slices[1]) : PanelParts();
      multiply(now, slices[0], parts, sums, finish);
      split_rest(parts);
      now = next;
      std::swap(slices[0], slices[1]);
    }
  }

 private:
  std::int64_t first_panel(std::int64_t item) const { return item / ranges_ * item_panels_; }
  std::int64_t panels_of(std::int64_t item) const { return std::min(item_panels_, panels_ - first_panel(item)); }

  PanelParts parts_of(const SliceStep& step, std::byte* to) const {
    const auto* const panel = reinterpret_cast<const float*>(w_.as<const std::byte>() + (first_panel(step.item) + step.panel) * product_.panel_step);
    return {panel + step.first * panel_columns, std::min(parts_slice, length_ - step.first), to};
  }
  SliceStep after(SliceStep step, SharedItems& shared, int thread) const {
    if (++step.panel < panels_of(step.item)) return step;
    step.panel = 0;
    step.first += parts_slice;
    return step.first < length_ ? step : SliceStep{.item = shared.take(thread)};
  }

  template <class Finish>
  void multiply(const SliceStep& step, const std::byte* slice, PanelParts& next, float* sums, const Finish& finish) const {
    const std::int64_t range = step.item % ranges_, steps = std::min(parts_slice, length_ - step.first), chunks = div_up(steps, parts_steps);
    const std::int64_t begin = blocks_.count() * range / ranges_, end = blocks_.count() * (range + 1) / ranges_;
    const std::int64_t share = div_up(next.pairs, chunks * (end - begin));
    float* at = sums + step.panel * parts_item_rows * panel_columns;
    for (std::int64_t b = begin; b < end; ++b) {
      const BlockGroup block{blocks_, b, 1};
      const std::int64_t rows = block.rows(0), tiles = div_up(rows, amx_rows);
      const std::byte* const packed = product_.packed(block.first(0)) + step.first / parts_steps * parts_row_bytes * rows;
      parts_product(tiles)(packed, rows, slice, chunks, step.first == 0, next, share, at);
      if (step.first + steps == length_) finish(block, first_panel(step.item) + step.panel, at);
      at += tiles * amx_rows * panel_columns;
    }
  }

  const PackedProduct& product_;
  const RowBlocks& blocks_;
  const TensorView& w_;
  std::int64_t panels_, length_, ranges_, item_panels_ = 1;
};

}  // namespace

void linear_parts(const LaunchArgs& args, const ProductBinding& binding) {
  const TensorView w = binding.operands(args, 1), &y = args.outputs[binding.result];
  if (y.elements() == 0) return;
  const TileRun epilogue(binding.epilogue, args);
  const std::int64_t rows = Rows(y).count(), piece = parts_piece(rows), threads = args.pool->size();
  for (std::int64_t first = 0; first < rows; first += piece) {
    const RowBlocks blocks{first, std::min(rows, first + piece), RowForm::parts};
    PackedProduct product = make_product(w, RowForm::parts, args.workspace + threads * parts_thread_bytes, first);
    pack_blocks(args, binding, blocks, blocks.last - blocks.first, w.shape[1], product);
    const PartsRun run(product, blocks, w, args.pool->size());
    SharedItems shared(run.items(), args.pool->size());
    args.pool->run([&](int thread) {
      run.run(shared, thread, args.workspace + thread * parts_thread_bytes,
              [&](const BlockGroup& block, std::int64_t panel, const float* sums) { finish_block(epilogue, block, 0, panel, w.shape[0], sums); });
    });
  }
  binding.norm.run(args);
}

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cermet::cpu {
namespace {

HWY_EXPORT(linear_parts);

/// Fewer take as long as float32: what is left is memory.
constexpr std::int64_t least_parts_rows = 48;

Decline declines_parts(const Region& region) {
  const Problem& p = region.problem();
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}})
    if (p.input(i).dtype != DType::f32) return fmt::format("{} is {}, not f32", p.input_name(i), name_of(p.input(i).dtype));
  if (!p.is_constant(1)) return "weight is not constant, so it cannot be prepacked";
  const Dims& x = p.input(0).dims;
  if (!std::ranges::all_of(x, &Dim::is_constant)) return "the number of rows is not known, and with few of them bits would be others than with many";
  if (max_rows(p, 0) < least_parts_rows) return fmt::format("x has {} rows, fewer than {}", max_rows(p, 0), least_parts_rows);
  if (Decline reason = ProductBinding::declines_around(region)) return reason;
  return parts_decline();
}

std::int64_t parts_workspace(const Region& region, int threads) {
  const Problem& p = region.problem();
  const std::int64_t rows = std::min(max_rows(p, 0), parts_piece(max_rows(p, 0)));
  return threads * parts_thread_bytes + round_up(rows * packed_row_bytes(RowForm::parts, p.size(0, -1), 2), 64) + Prologue::workspace(region, rows) +
         amx_overread;
}

}  // namespace

extern const Kernel gemm_linear_parts = {
    .name = "gemm.linear.parts",
    .op = OpKind::linear,
    .summary = "float32 products by AMX tiles, each operand as three bf16, for 48 rows or more where that is measured to be faster than float32",
    .fuses = true,
    .declines = declines_parts,
    .bind = [](const Region& region, const Config& config) -> Launcher {
      return [binding = ProductBinding(region, config)](const LaunchArgs& args) { HWY_DYNAMIC_DISPATCH(linear_parts)(args, binding); };
    },
    .weight_layout = [](const Region& region, std::size_t operand) { return region.operand_of(1) == operand ? panel_layout(DType::f32) : nullptr; },
    .workspace = parts_workspace,
    .cost = [](const Region& region, const DeviceLimits& limits) {
      return roofline_seconds(region, std::max(1.0, parts_ratio()) * limits.f32_operations_per_second, limits);
    },
};

}  // namespace cermet::cpu
#endif
