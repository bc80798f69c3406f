// matmul: both operands are packed in every run, as float32 rows and float32 panels, and multiplied like linear's.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/gemm/matmul.cpp"
#include <hwy/foreach_target.h>

#include <atomic>

#include "kernel/cpu/gemm/packed_product-inl.hpp"

#ifndef CERMET_GEMM_MATMUL_ONCE
#define CERMET_GEMM_MATMUL_ONCE
namespace cermet::cpu {

/// What is known when a product is bound.
struct MatmulPlan {
  bool transpose_a, transpose_b;
  bool folded;  ///< b is one matrix for all of a: the batches of a are so many more rows
  ProductBinding binding;
};

/// Workspace bytes of one matrix product at a time.
inline std::int64_t matmul_bytes(std::int64_t rows, std::int64_t columns, std::int64_t length) {
  return round_up(std::min(rows, packed_row_limit) * length * static_cast<std::int64_t>(sizeof(float)), 64) + panels_bytes(DType::f32, columns, length);
}

}  // namespace cermet::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {
namespace {

/// packed[k][i] = element (first + i, k) as float32 for i < count, zero up to `width`. address(i) is that of element (first + i, 0).
template <class Address>
void pack_operand(const MatrixBatch& matrices, DType dtype, std::int64_t count, std::int64_t width, float* packed, Address&& address) {
  if (count < width) std::fill_n(packed, matrices.length * width, 0.0f);
  if (matrices.length_step != 1) {  // neighbours along the outer dimension
    const std::byte* const from = address(0);
    for (std::int64_t k = 0; k < matrices.length; ++k) widen(from, dtype, k * matrices.length_step, count, packed + k * width);
    return;
  }
  constexpr std::int64_t chunk = 64;
  for (std::int64_t k = 0; k < matrices.length; k += chunk)
    for (std::int64_t i = 0; i < count; ++i) {
      alignas(64) float wide[chunk];
      const std::int64_t steps = std::min(chunk, matrices.length - k);
      widen(address(i), dtype, k, steps, wide);
      for (std::int64_t j = 0; j < steps; ++j) packed[(k + j) * width + i] = wide[j];
    }
}

/// All products of a launch. Row g of the result is row g % m of batch g / m.
struct Matmul {
  MatrixBatch left, right;
  DType left_type, right_type;
  const TileRun& epilogue;
  std::int64_t m;     ///< rows of one matrix of a
  std::int64_t rows;  ///< rows that share a matrix of b
  std::int64_t columns;

  void pack_left(std::int64_t first, std::int64_t last, float* packed) const {
    pack_operand(left, left_type, last - first, last - first, packed, [&](std::int64_t i) { return left.at((first + i) / m, (first + i) % m); });
  }
  void pack_right(std::int64_t batch, std::int64_t panel, float* packed) const {
    const std::int64_t first = panel * panel_columns;
    pack_operand(right, right_type, std::min(panel_columns, columns - first), panel_columns, packed,
                 [&](std::int64_t i) { return right.at(batch, first + i); });
  }
  /// Rows [product * rows, (product + 1) * rows). each(n, body) calls body(0) .. body(n - 1), on one thread or several.
  template <class Each>
  void run(std::int64_t product, std::byte* workspace, int threads, Each&& each) const {
    constexpr auto float_bytes = static_cast<std::int64_t>(sizeof(float));
    const std::int64_t length = left.length, panels = panel_count(columns), panel_floats = length * panel_columns;
    float* const packed_panels = reinterpret_cast<float*>(workspace);
    float* const packed_rows = packed_panels + panels * panel_floats;
    each(panels, [&](std::int64_t panel) { pack_right(product * rows / m, panel, packed_panels + panel * panel_floats); });
    for (std::int64_t done = 0; done < rows; done += packed_row_limit) {
      const std::int64_t begin = product * rows + done;
      const RowBlocks blocks{begin, product * rows + std::min(rows, done + packed_row_limit)};
      each(blocks.count(), [&](std::int64_t b) { pack_left(blocks.begin(b), blocks.begin(b + 1), packed_rows + (blocks.begin(b) - begin) * length); });
      const PackedProduct packed{.form = RowForm::wide,
                                 .multiply = float_products(DType::f32),
                                 .amx = nullptr,
                                 .units = length,
                                 .unit_bytes = panel_columns * float_bytes,
                                 .panel_step = panel_floats * float_bytes,
                                 .row_unit_bytes = float_bytes,
                                 .row_bytes = length * float_bytes,
                                 .packed_rows = reinterpret_cast<std::byte*>(packed_rows),
                                 .first_row = begin};
      const Items items = cut(panels, blocks.count(), panel_floats * float_bytes, threads);
      each(items.count(), [&](std::int64_t item) {
        for_item(items, item, blocks, [&](const BlockGroup& group, std::int64_t panel) {
          alignas(64) Tile tiles[group_blocks];
          multiply_group(packed, reinterpret_cast<const std::byte*>(packed_panels + panel * panel_floats), group, tiles);
          for (std::int64_t i = 0; i < group.count; ++i) finish_block(epilogue, group, i, panel, columns, tiles[i]);
        });
      });
    }
  }
};

}  // namespace

void matmul_repacked(const LaunchArgs& args, const MatmulPlan& plan) {
  const TensorView a = plan.binding.operands(args, 0), b = plan.binding.operands(args, 1), &y = args.outputs[0];
  if (y.elements() == 0) return;
  const std::int64_t m = y.shape[y.shape.rank() - 2], columns = y.shape.back();
  const Rows results(y);
  const TileRun epilogue(plan.binding.epilogue, args);
  const Matmul all{
      MatrixBatch(a, plan.transpose_a, y), MatrixBatch(b, !plan.transpose_b, y), a.dtype, b.dtype, epilogue, m, plan.folded ? results.count() : m, columns};
  const std::int64_t products = results.count() / all.rows;
  if (products < args.pool->size()) {
    for (std::int64_t i = 0; i < products; ++i)
      all.run(i, args.workspace, args.pool->size(), [&](std::int64_t count, auto&& body) { args.pool->dynamic_for(count, body); });
    return;
  }
  const std::int64_t bytes = round_up(matmul_bytes(all.rows, columns, all.left.length), 64);
  std::atomic<std::int64_t> next{0};
  args.pool->run([&](int thread) {
    for (std::int64_t i = next.fetch_add(1); i < products; i = next.fetch_add(1))
      all.run(i, args.workspace + thread * bytes, 1, [&](std::int64_t count, auto&& body) {
        for (std::int64_t j = 0; j < count; ++j) body(j);
      });
  });
}

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cermet::cpu {
namespace {

HWY_EXPORT(matmul_repacked);

bool is_folded(const Problem& p) {
  const Dims& b = p.input(1).dims;
  const bool one_b = std::all_of(b.begin(), b.end() - 2, [](const Dim& d) { return d == Dim(1); });
  return one_b && !p.attributes.flag("transpose_a");
}

MatmulPlan plan_of(const Region& region) {
  const Problem& p = region.problem();
  return {p.attributes.flag("transpose_a"), p.attributes.flag("transpose_b"), is_folded(p), ProductBinding(region)};
}

std::int64_t workspace(const Problem& p, int threads) {
  const bool folded = is_folded(p);
  const Dims& y = p.outputs[0].dims;
  std::int64_t rows = 1;
  for (std::size_t axis = folded ? 0 : y.size() - 2; axis + 1 < y.size(); ++axis) rows *= y[axis].value(p.maximum);
  const std::int64_t bytes = matmul_bytes(rows, y.back().value(p.maximum), p.size(0, p.attributes.flag("transpose_a") ? -2 : -1));
  return round_up(bytes, 64) * (folded ? 1 : threads);
}

}  // namespace

extern const Kernel gemm_matmul_repacked{
    .name = "gemm.matmul.repacked",
    .op = OpKind::matmul,
    .summary = "packs both operands in every run; a matrix per thread where there are enough, else threads share each product",
    .fuses = true,
    .declines = [](const Region& region) -> Decline {
      const DType type = region.problem().input(0).dtype;
      if (!dtypes::real.contains(type)) return fmt::format("a is {}, which is not multiplied as float32", name_of(type));
      return ProductBinding::declines(region);
    },
    .bind = [](const Region& region) -> Launcher {
      return [plan = plan_of(region)](const LaunchArgs& args) {
        HWY_DYNAMIC_DISPATCH(matmul_repacked)
        (args, plan);
      };
    },
    .workspace = workspace,
};

}  // namespace cermet::cpu
#endif
