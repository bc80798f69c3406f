// linear of float32 by AMX tiles, over the panels that float32 products have: they are split into parts slice by slice
// while the slice before is multiplied.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/gemm/linear_parts.cpp"
#include <hwy/foreach_target.h>

#include <numeric>

#include "kernel/cpu/gemm/parts_run-inl.hpp"
#include "kernel/cpu/gemm/product_rows-inl.hpp"
#include "kernel/roofline.hpp"

#ifndef CERMET_LINEAR_PARTS_ONCE
#define CERMET_LINEAR_PARTS_ONCE
namespace cermet::cpu {

/// Pieces that rows are packed in, which bounds workspace; all but the last are whole tiles.
inline std::int64_t parts_piece(std::int64_t rows) {
  return round_up(div_up(rows, div_up(rows, packed_row_limit)), 16);
}

}  // namespace cermet::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {
namespace {

/// Rows that each thread packs for itself, an item at a time.
struct OwnRows {
  const LaunchArgs& args;
  const ProductBinding& binding;
  const RowBlocks& blocks;
  const WindowRows* windows;
  PackedProduct product;  ///< the memory of all threads
  TensorView x,
      made;  ///< all rows, and those that each thread makes of what comes before the product; one of them is present

  OwnRows(const LaunchArgs& launch, const ProductBinding& bound, const RowBlocks& all, const WindowRows* of_windows,
          const TensorView& w, std::byte* memory)
      : args(launch),
        binding(bound),
        blocks(all),
        windows(of_windows),
        product(make_product(w, RowForm::parts, memory, 0)) {
    const std::int64_t held = args.pool->size() * rows_of_parts(own_blocks);
    if (binding.prologue)
      made = binding.prologue.rows(held, w.shape.back(), memory + round_up(held * product.row_bytes, 64));
    else if (!windows) x = binding.operands(args, 0);
  }
  PackedProduct pack(std::int64_t first_block, std::int64_t last_block, int thread) const {
    const std::int64_t first = blocks.begin(first_block), last = blocks.begin(last_block),
                       before = thread * rows_of_parts(own_blocks);
    PackedProduct own = product;
    own.packed_rows += before * product.row_bytes;
    own.first_row = first;
    if (windows) {
      for (std::int64_t b = first_block; b < last_block; ++b)
        pack_parts(*windows, blocks.begin(b), blocks.begin(b + 1), own.packed(blocks.begin(b)));
      return own;
    }
    TensorView rows = x;
    if (binding.prologue) {
      rows = made;
      rows.data = made.as<std::byte>() + before * made.strides[0] * byte_size(made.dtype);
      rows.shape[0] = last - first;
      binding.prologue.run(args, first, last, rows, first);
    }
    const std::int64_t base = binding.prologue ? first : 0;
    for (std::int64_t b = first_block; b < last_block; ++b)
      pack_rows(Rows(rows), rows.dtype, blocks.begin(b) - base, blocks.begin(b + 1) - base, RowForm::parts,
                own.packed(blocks.begin(b)));
    return own;
  }
};

/// A packed weight, whose taps and channels are steps of the reduction.
TensorView matrix_of(TensorView w) {
  w.shape = {w.shape[0], w.shape[0] == 0 ? 0 : w.elements() / w.shape[0]};
  return w;
}

}  // namespace

void run_linear_parts(const LaunchArgs& args, const ProductBinding& binding, const WindowPlan* plan) {
  const TensorView w = matrix_of(binding.operands(args, 1)), &y = args.outputs[binding.result];
  if (y.elements() == 0) return;
  std::optional<WindowRows> windows;
  if (plan) windows.emplace(*plan, args, y);
  const TileRun epilogue(binding.epilogue, args);
  const auto finish = [&](const BlockGroup& block, std::int64_t panel, const float* sums) {
    finish_block(epilogue, block, 0, panel, w.shape[0], sums);
  };
  const std::int64_t rows = Rows(y).count(), threads = args.pool->size(), piece = parts_piece(rows);
  std::byte* const packed = args.workspace + threads * parts_thread_bytes;
  const auto run_all = [&](const RowBlocks& blocks, bool own_rows, const auto& begin) {
    const PartsRun run(blocks, w, own_rows, args.pool->size());
    SharedItems shared(run.items(), args.pool->size());
    args.pool->run([&](int thread) {
      run.run(
          shared, thread, args.workspace + thread * parts_thread_bytes,
          [&](std::int64_t first, std::int64_t last) { return begin(first, last, thread); }, finish);
    });
  };
  const RowBlocks all{0, rows, RowForm::parts};
  const std::int64_t most_bytes = own_weight_bytes * (panel_count(w.shape[0]) <= few_panels ? 2 : 1);
  const bool own_rows = panels_bytes(w.dtype, w.shape[0], w.shape[1]) <= most_bytes && all.count() >= 2 * threads &&
                        threads * rows_of_parts(own_blocks) <= packed_row_limit && !binding.prologue.makes_all();
  if (own_rows) {
    const OwnRows own(args, binding, all, windows ? &*windows : nullptr, w, packed);
    run_all(all, true,
            [&](std::int64_t first, std::int64_t last, int thread) { return own.pack(first, last, thread); });
  } else {
    for (std::int64_t first = 0; first < rows; first += piece) {
      const RowBlocks blocks{first, std::min(rows, first + piece), RowForm::parts};
      const PackedProduct product = make_product(w, RowForm::parts, packed, first);
      if (windows)
        for_blocks(
            blocks, (blocks.last - blocks.first) * w.shape[1], *args.pool,
            [&](std::int64_t begin, std::int64_t end) { pack_parts(*windows, begin, end, product.packed(begin)); });
      else pack_blocks(args, binding, blocks, blocks.last - blocks.first, w.shape[1], product);
      run_all(blocks, false, [&](std::int64_t, std::int64_t, int) { return product; });
    }
  }
  binding.norm.run(args);
}

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cermet::cpu {
namespace {

HWY_EXPORT(run_linear_parts);

/// Fewer rows take as long as float32: what is left is memory.
constexpr PartsSizes least_of_linear{.rows = 48};

/// Rows and length of the reduction of a product or of a convolution's.
std::int64_t rows_of(const Problem& p) {
  const Dims& y = p.outputs[0].dims;
  return std::accumulate(y.begin(), y.end() - 1, std::int64_t{1},
                         [&](std::int64_t rows, const Dim& dim) { return rows * dim.value(p.maximum); });
}
std::int64_t length_of(const Problem& p) {
  const Dims& w = p.input(1).dims;
  return std::accumulate(w.begin() + 1, w.end(), std::int64_t{1},
                         [](std::int64_t length, const Dim& dim) { return length * dim.constant(); });
}

Decline too_few(std::string_view what, std::int64_t found, std::int64_t least) {
  return found < least ? Decline(fmt::format("there are {} {}, fewer than {}", found, what, least)) : std::nullopt;
}

}  // namespace

void linear_parts(const LaunchArgs& args, const ProductBinding& binding, const WindowPlan* windows) {
  HWY_DYNAMIC_DISPATCH(run_linear_parts)(args, binding, windows);
}

Decline linear_parts_decline(const Problem& p, const PartsSizes& least) {
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}})
    if (p.input(i).dtype != DType::f32)
      return fmt::format("{} is {}, not f32", p.input_name(i), name_of(p.input(i).dtype));
  if (!p.is_constant(1)) return "weight is not constant, so it cannot be prepacked";
  const Dims& x = p.input(0).dims;
  if (!std::ranges::all_of(x, &Dim::is_constant))
    return "the number of rows is not known, and with few of them bits would be others than with many";
  if (Decline reason = too_few("rows", rows_of(p), least.rows)) return reason;
  if (Decline reason = too_few("columns", p.size(1, 0), least.columns)) return reason;
  if (Decline reason = too_few("steps of the reduction", length_of(p), least.steps)) return reason;
  return parts_decline();
}

std::int64_t linear_parts_workspace(const Region& region, int threads) {
  const Problem& p = region.problem();
  const std::int64_t all = rows_of(p), rows = std::max(std::min(all, parts_piece(all)),
                                                       std::min(packed_row_limit, threads * rows_of_parts(own_blocks)));
  return threads * parts_thread_bytes + round_up(rows * packed_row_bytes(RowForm::parts, length_of(p), 2), 64) +
         Prologue::workspace(region, rows) + amx_overread;
}

double linear_parts_cost(const Region& region, const DeviceLimits& limits) {
  constexpr double reached = 0.55;  // of the rate in registers, beside the share of theirs that float32 products reach
  return roofline_seconds(region, std::max(1.0, reached * parts_ratio()) * limits.f32_operations_per_second, limits);
}

extern const Kernel gemm_linear_parts = {
    .name = "gemm.linear.parts",
    .op = OpKind::linear,
    .summary =
        "float32 products by AMX tiles, each operand as three bf16, for 48 rows or more where that is measured to be "
        "faster than float32",
    .fuses = true,
    .declines = [](const Region& region) -> Decline {
      if (Decline reason = linear_parts_decline(region.problem(), least_of_linear)) return reason;
      if (ProductBinding::is_gated(region))
        return "a gate multiplies the halves of a row, whose columns are summed apart here";
      return ProductBinding::declines_around(region);
    },
    .bind = [](const Region& region, const Config& config) -> Launcher {
      return [binding = ProductBinding(region, config)](const LaunchArgs& args) { linear_parts(args, binding); };
    },
    .weight_layout =
        [](const Region& region, std::size_t operand) {
          return region.operand_of(1) == operand ? panel_layout(DType::f32) : nullptr;
        },
    .workspace = linear_parts_workspace,
    .cost = linear_parts_cost,
};

}  // namespace cermet::cpu
#endif
