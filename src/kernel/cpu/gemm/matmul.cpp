// matmul: both operands are packed in every run, as float32 rows and float32 panels, or bf16 ones for AMX tiles, and
// multiplied like linear's.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/gemm/matmul.cpp"
#include <hwy/foreach_target.h>

#include <atomic>
#include <cstring>

#include "kernel/cpu/gemm/packed_product-inl.hpp"
#include "kernel/cpu/gemm/strided_operands.hpp"

#ifndef CERMET_GEMM_MATMUL_ONCE
#define CERMET_GEMM_MATMUL_ONCE
namespace cermet::cpu {

/// What is known when a product is bound.
struct MatmulPlan {
  bool transpose_a, transpose_b;
  bool folded;  ///< b is one matrix for all of a: the batches of a are so many more rows
  RowForm form;
  DType left_type;
  std::optional<StridedOperands> strided;  ///< where nodes before the product make its operands so
  ProductBinding binding;

  TensorView operand(const LaunchArgs& args, std::size_t input) const {
    return strided ? (*strided)(args, input) : binding.operands(args, input);
  }
};

/// Type of packed panels.
constexpr DType matmul_type(RowForm form) { return form == RowForm::chunks ? DType::bf16 : DType::f32; }

/// Bytes of one packed row.
constexpr std::int64_t matmul_row_bytes(RowForm form, std::int64_t length) {
  return form == RowForm::chunks ? packed_row_bytes(form, length, 2)
                                 : length * static_cast<std::int64_t>(sizeof(float));
}

/// Workspace bytes of one matrix product at a time, without rows that are made before it: those come last.
inline std::int64_t matmul_bytes(RowForm form, std::int64_t rows, std::int64_t columns, std::int64_t length) {
  return panels_bytes(matmul_type(form), columns, length) +
         round_up(std::min(rows, packed_row_limit) * matmul_row_bytes(form, length), 64) +
         (form == RowForm::chunks ? round_up(amx_overread, 64) : 0);
}
/// The same of those rows.
inline std::int64_t made_bytes(std::int64_t rows, std::int64_t length, DType dtype) {
  return round_up(std::min(rows, packed_row_limit) * length * byte_size(dtype), 64);
}

}  // namespace cermet::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {
namespace {

/// packed[k][i] = element (first + i, k) as float32 for i < count, zero up to `width`. address(i): of element (first +
/// i, 0); `even`: all at one distance.
template <class Address>
void pack_operand(const MatrixBatch& matrices, DType dtype, std::int64_t count, std::int64_t width, float* packed,
                  bool even, Address&& address) {
  if (count < width) std::fill_n(packed, matrices.length * width, 0.0f);
  if (matrices.length_step != 1) {  // neighbours along the outer dimension
    const std::byte* const from = address(0);
    for (std::int64_t k = 0; k < matrices.length; ++k)
      widen(from, dtype, k * matrices.length_step, count, packed + k * width);
    return;
  }
  if (even && count == width) {
    const TensorView rows(const_cast<std::byte*>(address(0)), dtype, {count, matrices.length},
                          {matrices.outer_step, 1});
    return pack_block(Rows(rows), dtype, 0, count, matrices.length, packed);
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

/// Rows of bf16 in chunks. address(i) is that of element (first + i, 0).
template <class Address>
void pack_row_chunks(const MatrixBatch& matrices, std::int64_t rows, std::byte* packed, Address&& address) {
  constexpr std::int64_t bytes = 2, steps = chunk_bytes / bytes;
  if (matrices.length_step == 1) return pack_chunks(rows, matrices.length * bytes, packed, address);
  std::memset(packed, 0, static_cast<std::size_t>(rows * packed_row_bytes(RowForm::chunks, matrices.length, bytes)));
  for (std::int64_t k = 0; k < matrices.length; ++k)
    for (std::int64_t r = 0; r < rows; ++r)
      std::memcpy(packed + ((k / steps * rows + r) * steps + k % steps) * bytes,
                  address(r) + k * matrices.length_step * bytes, bytes);
}

/// A panel of bf16 of `count` columns, [k / 2][32][2]. address(c) is that of element (first column + c, 0).
template <class Address>
void pack_pair_panel(const MatrixBatch& matrices, std::int64_t count, std::byte* packed, Address&& address) {
  constexpr std::int64_t bytes = 2;
  std::memset(packed, 0, static_cast<std::size_t>(panel_bytes(DType::bf16, matrices.length)));
  const auto put = [&](std::int64_t c, std::int64_t k, std::int64_t steps, const std::byte* from) {
    std::memcpy(packed + ((k / 2 * panel_columns + c) * 2 + k % 2) * bytes, from,
                static_cast<std::size_t>(steps * bytes));
  };
  if (matrices.length_step == 1) {
    for (std::int64_t c = 0; c < count; ++c) {
      const std::byte* const from = address(c);
      for (std::int64_t k = 0; k + 2 <= matrices.length; k += 2) put(c, k, 2, from + k * bytes);
      if (matrices.length % 2 == 1) put(c, matrices.length - 1, 1, from + (matrices.length - 1) * bytes);
    }
    return;
  }
  for (std::int64_t k = 0; k < matrices.length; ++k)
    for (std::int64_t c = 0; c < count; ++c) put(c, k, 1, address(c) + k * matrices.length_step * bytes);
}

/// All products of a launch. Row g of the result is row g % m of batch g / m.
struct Matmul {
  MatrixBatch left, right;
  DType left_type, right_type;
  const TileRun& epilogue;
  std::int64_t m;     ///< rows of one matrix of a
  std::int64_t rows;  ///< rows that share a matrix of b
  std::int64_t columns;

  RowForm form;
  const LaunchArgs& args;
  const Prologue& prologue;

  /// `made`: where rows from `begin` on are put that nodes before the product make.
  void pack_left(std::int64_t first, std::int64_t last, std::byte* packed, std::int64_t begin, std::byte* made) const {
    const std::int64_t made_row = left.length * byte_size(left_type);
    if (prologue) prologue.run(args, first, last, prologue.rows(last - begin, left.length, made), begin);
    const auto address = [&](std::int64_t i) -> const std::byte* {
      return prologue ? made + (first + i - begin) * made_row : left.at((first + i) / m, (first + i) % m);
    };
    if (form == RowForm::chunks) return pack_row_chunks(left, last - first, packed, address);
    const bool even = prologue || first / m == (last - 1) / m;
    pack_operand(left, left_type, last - first, last - first, reinterpret_cast<float*>(packed), even, address);
  }
  void pack_right(std::int64_t batch, std::int64_t panel, std::byte* packed) const {
    const std::int64_t first = panel * panel_columns, count = std::min(panel_columns, columns - first);
    const auto address = [&](std::int64_t i) { return right.at(batch, first + i); };
    if (form == RowForm::chunks) return pack_pair_panel(right, count, packed, address);
    pack_operand(right, right_type, count, panel_columns, reinterpret_cast<float*>(packed), true, address);
  }
  PackedProduct packed_product(std::byte* packed_rows, std::int64_t first_row) const {
    const DType type = matmul_type(form);
    const std::int64_t unit = panel_unit(type), element_bytes = byte_size(type);
    return {.form = form,
            .multiply = float_products(DType::f32),
            .amx = form == RowForm::chunks ? amx_products(type) : nullptr,
            .units = div_up(left.length, unit),
            .unit_bytes = unit * panel_columns * element_bytes,
            .panel_step = panel_bytes(type, left.length),
            .row_unit_bytes = unit * element_bytes,
            .row_bytes = matmul_row_bytes(form, left.length),
            .packed_rows = packed_rows,
            .first_row = first_row};
  }
  /// Rows [product * rows, (product + 1) * rows). each(n, body) calls body(0) .. body(n - 1), on one thread or several.
  template <class Each>
  void run(std::int64_t product, std::byte* workspace, int threads, Each&& each) const {
    const std::int64_t panels = panel_count(columns), panel_step = panel_bytes(matmul_type(form), left.length);
    std::byte *const packed_panels = workspace, *const made =
                                                    workspace + matmul_bytes(form, rows, columns, left.length);
    each(panels,
         [&](std::int64_t panel) { pack_right(product * rows / m, panel, packed_panels + panel * panel_step); });
    for (std::int64_t done = 0; done < rows; done += packed_row_limit) {
      const std::int64_t begin = product * rows + done;
      const RowBlocks blocks{begin, product * rows + std::min(rows, done + packed_row_limit), form};
      const PackedProduct packed = packed_product(packed_panels + panels * panel_step, begin);
      each(blocks.count(), [&](std::int64_t b) {
        pack_left(blocks.begin(b), blocks.begin(b + 1), packed.packed(blocks.begin(b)), begin, made);
      });
      const Items items = cut(panels, blocks.count(), panel_step, threads, bytes_together({}, form));
      each(items.count(), [&](std::int64_t item) {
        for_item(items, item, blocks, [&](const BlockGroup& group, std::int64_t panel) {
          multiply_panels(
              packed, std::array<const std::byte*, 1>{packed_panels + panel * panel_step}, group,
              [&](std::int64_t i, auto&& tile) { finish_block(epilogue, group, i, panel, columns, tile(0)); });
        });
      });
    }
  }
};

}  // namespace

void matmul_repacked(const LaunchArgs& args, const MatmulPlan& plan) {
  TensorView a = plan.operand(args, 0);
  const TensorView b = plan.operand(args, 1), &y = args.outputs[plan.binding.result];
  if (y.elements() == 0) return;
  if (plan.binding.prologue) {  // rows like those of the result
    Shape shape = y.shape;
    shape[shape.rank() - 1] = b.shape[b.shape.rank() - (plan.transpose_b ? 1 : 2)];
    a = TensorView(nullptr, plan.left_type, shape);
  }
  const std::int64_t m = y.shape[y.shape.rank() - 2], columns = y.shape.back();
  const Rows results(y);
  const TileRun epilogue(plan.binding.epilogue, args);
  const Matmul all{MatrixBatch(a, plan.transpose_a, y),
                   MatrixBatch(b, !plan.transpose_b, y),
                   a.dtype,
                   b.dtype,
                   epilogue,
                   m,
                   plan.folded ? results.count() : m,
                   columns,
                   plan.form,
                   args,
                   plan.binding.prologue};
  const std::int64_t products = results.count() / all.rows;
  if (products < args.pool->size()) {
    for (std::int64_t i = 0; i < products; ++i)
      all.run(i, args.workspace, args.pool->size(),
              [&](std::int64_t count, auto&& body) { args.pool->dynamic_for(count, body); });
    return;
  }
  const std::int64_t made = plan.binding.prologue ? made_bytes(all.rows, all.left.length, a.dtype) : 0;
  const std::int64_t bytes = matmul_bytes(plan.form, all.rows, columns, all.left.length) + made;
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

/// Whether rows of a are made before the product.
bool is_made(const Region& region) { return region.anchor > 0 && !StridedOperands::serve(region); }

MatmulPlan plan_of(const Region& region, RowForm form) {
  const Problem& p = region.problem();
  const bool strided = region.anchor > 0 && !is_made(region);
  return {p.attributes.flag("transpose_a"),
          p.attributes.flag("transpose_b"),
          is_folded(p),
          form,
          p.input(0).dtype,
          strided ? std::optional<StridedOperands>(region) : std::nullopt,
          ProductBinding(region, {}, strided ? ProductBinding::Before::own : ProductBinding::Before::prologue)};
}

std::int64_t workspace(const Region& region, RowForm form, int threads) {
  const Problem& p = region.problem();
  const bool folded = is_folded(p);
  const Dims& y = p.outputs[0].dims;
  std::int64_t rows = 1;
  for (std::size_t axis = folded ? 0 : y.size() - 2; axis + 1 < y.size(); ++axis) rows *= y[axis].value(p.maximum);
  const std::int64_t length = p.size(0, p.attributes.flag("transpose_a") ? -2 : -1),
                     made = is_made(region) ? made_bytes(rows, length, p.input(0).dtype) : 0;
  return (matmul_bytes(form, rows, y.back().value(p.maximum), length) + made) * (folded ? 1 : threads);
}

/// Operands are read where they lie, where they only move; else rows of a alone are made before the product, where
/// those of the result are as many.
Decline declines_before(const Region& region) {
  if (StridedOperands::serve(region)) return ProductBinding::declines_after(region);
  const RegionNode& product = region.nodes[static_cast<std::size_t>(region.anchor)];
  const Problem& p = product.problem;
  const Dims &a = p.input(0).dims, &y = p.outputs[0].dims;
  const auto fails = [&](std::string_view why) -> Decline {
    return fmt::format("{} before matmul: {}", region.nodes[0].problem.op->name, why);
  };
  if (product.inputs[1].is_inside())
    return StridedOperands::make_all(region) ? StridedOperands::declines(region) : fails("it makes the right operand");
  if (p.attributes.flag("transpose_a")) return fails("the rows of a are columns");
  if (a.size() != y.size() || !std::equal(a.begin(), a.end() - 1, y.begin()))
    return fails("matrices of a meet several of b");
  if (region.nodes[0].problem.op->kind == OpKind::reduce_mean) return fails("its rows are read in batches");
  return NormAfter::ends(region) ? fails("a norm comes after it, too") : ProductBinding::declines_around(region);
}

Decline declines(const Region& region, RowForm form) {
  const Problem& p = region.problem();
  const DType type = p.input(0).dtype;
  if (!dtypes::real.contains(type)) return fmt::format("a is {}, which is not multiplied as float32", name_of(type));
  for (std::size_t i = 0; form == RowForm::chunks && i < 2; ++i)
    if (p.input(i).dtype != DType::bf16)
      return fmt::format("{} is {}, not bf16", p.input_name(i), name_of(p.input(i).dtype));
  if (Decline reason = region.anchor > 0 ? declines_before(region) : ProductBinding::declines(region)) return reason;
  return form == RowForm::chunks ? amx_decline(DType::bf16) : std::nullopt;
}

Kernel matmul_kernel(std::string name, RowForm form, std::string summary) {
  return {
      .name = std::move(name),
      .op = OpKind::matmul,
      .summary = std::move(summary),
      .fuses = true,
      .declines = [form](const Region& region) { return declines(region, form); },
      .bind = [form](const Region& region) -> Launcher {
        return [plan = plan_of(region, form)](const LaunchArgs& args) {
          HWY_DYNAMIC_DISPATCH(matmul_repacked)(args, plan);
        };
      },
      .workspace = [form](const Region& region, int threads) { return workspace(region, form, threads); },
  };
}

}  // namespace

extern const Kernel gemm_matmul_amx =
    matmul_kernel("gemm.matmul.amx", RowForm::chunks, "as gemm.matmul.repacked, bf16 by AMX tiles");
extern const Kernel gemm_matmul_repacked = matmul_kernel(
    "gemm.matmul.repacked", RowForm::wide,
    "packs both operands in every run; a matrix per thread where there are enough, else threads share each product");

}  // namespace cermet::cpu
#endif
