// matmul of f64 and of integers: rows of the result that stay in L1, over the operands as they lie in memory.
#include <algorithm>

#include "kernel/kernel.hpp"
#include "op/products.hpp"

namespace cermet::cpu {
namespace {

constexpr std::int64_t tile_columns = 256;

/// sums[i] += a[k] * b[k][i] over all k. The form of dense columns is separate so that the compiler vectorizes it.
template <class T>
void multiply_row(const T* a, std::int64_t a_step, const T* b, std::int64_t b_step, std::int64_t column_step,
                  std::int64_t length, std::int64_t columns, T* sums) {
  for (std::int64_t k = 0; k < length; ++k) {
    const T factor = a[k * a_step];
    const T* const row = b + k * b_step;
    if (column_step == 1)
      for (std::int64_t i = 0; i < columns; ++i) sums[i] += factor * row[i];
    else
      for (std::int64_t i = 0; i < columns; ++i) sums[i] += factor * row[i * column_step];
  }
}

/// T: double, or the unsigned integer of the width, whose arithmetic wraps as that of the signed one does.
template <class T>
void multiply(const LaunchArgs& args, bool transpose_a, bool transpose_b) {
  const TensorView& y = args.outputs[0];
  if (y.elements() == 0) return;
  const MatrixBatch left(args.inputs[0], transpose_a, y), right(args.inputs[1], !transpose_b, y);
  const Rows results(y);
  const std::int64_t rows = y.shape[y.shape.rank() - 2], columns = y.shape.back();
  args.pool->parallel_for(results.count(), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      const T* const a = reinterpret_cast<const T*>(left.at(r / rows, r % rows));
      T* const to = reinterpret_cast<T*>(results.row(r));
      for (std::int64_t first = 0; first < columns; first += tile_columns) {
        const std::int64_t n = std::min(tile_columns, columns - first);
        std::fill_n(to + first, n, T{0});
        multiply_row(a, left.length_step, reinterpret_cast<const T*>(right.at(r / rows, first)), right.length_step,
                     right.outer_step, left.length, n, to + first);
      }
    }
  });
}

}  // namespace

extern const Kernel gemm_matmul_plain{
    .name = "gemm.matmul.plain",
    .op = OpKind::matmul,
    .summary = "f64 and integers, a row of the result at a time; rows spread over threads",
    .declines = [](const Region& region) -> Decline {
      const DType type = region.problem().input(0).dtype;
      if (dtypes::real.contains(type))
        return fmt::format("a is {}; only f64 and integers are multiplied as they lie in memory", name_of(type));
      return std::nullopt;
    },
    .bind = [](const Problem& p) -> Launcher {
      const bool ta = p.attributes.flag("transpose_a"), tb = p.attributes.flag("transpose_b");
      const DType type = p.input(0).dtype;
      return [ta, tb, type](const LaunchArgs& args) {
        if (type == DType::f64) multiply<double>(args, ta, tb);
        else if (size_of(type) == 4) multiply<std::uint32_t>(args, ta, tb);
        else multiply<std::uint64_t>(args, ta, tb);
      };
    },
};

}  // namespace cermet::cpu
