#include "kernel/cpu/by_any_dtype.hpp"
#include "kernel/cpu/by_size.hpp"
#include "kernel/cpu/movement/combine.hpp"
#include "kernel/cpu/movement/copy.hpp"
#include "kernel/cpu/movement/slices.hpp"
#include "kernel/cpu/scalar.hpp"
#include "kernel/kernel.hpp"
#include "op/operands.hpp"

namespace cermet::cpu {
namespace {

/// Threads share out y: each looks at all updates, in order, and applies those whose slice begins in its part of the
/// first axes. A single slice, or few long ones, are shared out by their runs instead.
template <class Apply>
void for_tuples(const LaunchArgs& args, std::int64_t* offsets, Apply&& apply) {
  const TensorView &indices = args.inputs[1], &updates = args.inputs[op::scatter_nd::updates], &y = args.outputs[0];
  const int lead = indices.shape.rank() - 1, n = static_cast<int>(indices.shape.back());
  StridedAxes<2> tuples;
  for (int a = 0; a < lead; ++a) tuples.push_back(indices.shape[a], {indices.strides[a], updates.strides[a]});
  const std::int64_t count = tuples.shape.elements();
  args.pool->parallel_for(count, 1024, [&](std::int64_t begin, std::int64_t end) {
    Walk<2> walk(tuples, begin);
    for (std::int64_t t = begin; t < end; ++t, walk.next()) {
      offsets[2 * t] = slice_offset(y, 0, indices, walk.offset[0], "scatter_nd");
      offsets[2 * t + 1] = walk.offset[1];
    }
  });
  const Slice slice(y, n, updates, lead);
  std::int64_t reach = 1;  // beyond the largest offset of a slice
  for (int a = 0; a < n; ++a) reach += (y.shape[a] - 1) * y.strides[a];
  const int threads = args.pool->size();
  const bool by_run = slice.run >= 256 * threads;
  args.pool->run([&](int thread) {
    const auto part = [&](std::int64_t size, int t) { return size * t / threads; };
    const std::int64_t first = by_run ? 0 : part(reach, thread), end = by_run ? reach : part(reach, thread + 1);
    const std::int64_t column = by_run ? part(slice.run, thread) : 0,
                       columns = (by_run ? part(slice.run, thread + 1) : slice.run) - column;
    for (std::int64_t t = 0; t < count; ++t) {
      const std::int64_t to = offsets[2 * t], from = offsets[2 * t + 1];
      if (to < first || to >= end) continue;
      slice.for_runs([&](std::int64_t a, std::int64_t b) { apply(to + a + column, from + b + column, columns); });
    }
  });
}

template <class T>
void replace(const LaunchArgs& args, std::int64_t* offsets) {
  const TensorView &updates = args.inputs[op::scatter_nd::updates], &y = args.outputs[0];
  for_tuples(args, offsets, [&](std::int64_t to, std::int64_t from, std::int64_t count) {
    std::memcpy(y.as<T>() + to, updates.as<const T>() + from, static_cast<std::size_t>(count) * sizeof(T));
  });
}

template <class T>
void combine(const LaunchArgs& args, std::int64_t* offsets, Reduction kind) {
  const TensorView &updates = args.inputs[op::scatter_nd::updates], &y = args.outputs[0];
  for_tuples(args, offsets, [&](std::int64_t to, std::int64_t from, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i)
      y.as<T>()[to + i] = combined(kind, y.as<T>()[to + i], updates.as<const T>()[from + i]);
  });
}

/// bf16 and f16: y is accumulated in float32, at the same offsets, and rounded once.
template <class T>
void combine_widened(const LaunchArgs& args, std::int64_t* offsets, float* sums, Reduction kind) {
  const TensorView &updates = args.inputs[op::scatter_nd::updates], &y = args.outputs[0];
  Shape dense = dense_strides(y.shape);
  const Rows rows(y);
  const auto for_rows = [&](auto&& body) {
    args.pool->parallel_for(rows.count(), rows_per_thread(rows.length() * 4),
                            [&](std::int64_t begin, std::int64_t end) {
                              for (std::int64_t r = begin; r < end; ++r) {
                                T* row = reinterpret_cast<T*>(rows.row(r));
                                for (std::int64_t i = 0; i < rows.length(); ++i)
                                  body(row[i], sums[r * rows.length() + i]);
                              }
                            });
  };
  for_rows([](const T& from, float& to) { to = format::to_float(from); });
  const TensorView accumulated(sums, DType::f32, y.shape, dense);
  const TensorView results[] = {accumulated};
  LaunchArgs widened = args;
  widened.outputs = results;
  for_tuples(widened, offsets, [&](std::int64_t to, std::int64_t from, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i)
      sums[to + i] = combined(kind, sums[to + i], format::to_float(updates.as<const T>()[from + i]));
  });
  for_rows([](T& to, const float& from) { store_float(to, from); });
}

/// Two offsets for each row of coordinates.
std::int64_t offset_bytes(std::int64_t tuples) { return tuples * 2 * static_cast<std::int64_t>(sizeof(std::int64_t)); }

bool is_widened(DType dtype) { return dtype == DType::bf16 || dtype == DType::f16; }

std::int64_t tuples_of(const Shape& indices) {
  std::int64_t tuples = 1;
  for (int a = 0; a + 1 < indices.rank(); ++a) tuples *= indices[a];
  return tuples;
}

void scatter_at_tuples(const LaunchArgs& args, std::optional<Reduction> reduction) {
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  if (x.data != y.data) strided_copy(x.shape, x.data, x.strides, y.data, y.strides, size_of(x.dtype), *args.pool);
  if (args.inputs[op::scatter_nd::updates].elements() == 0) return;
  auto* offsets = reinterpret_cast<std::int64_t*>(args.workspace);
  if (!reduction) return by_element_size(size_of(x.dtype), [&](auto zero) { replace<decltype(zero)>(args, offsets); });
  auto* sums = reinterpret_cast<float*>(args.workspace + offset_bytes(tuples_of(args.inputs[1].shape)));
  if (x.dtype == DType::bf16) return combine_widened<format::bf16>(args, offsets, sums, *reduction);
  if (x.dtype == DType::f16) return combine_widened<format::f16>(args, offsets, sums, *reduction);
  by_accumulating_dtype(x.dtype, [&](auto zero) { combine<decltype(zero)>(args, offsets, *reduction); });
}

}  // namespace

extern const Kernel movement_scatter_nd{
    .name = "movement.scatter_nd",
    .op = OpKind::scatter_nd,
    .summary = "copies, then applies the updates in order; places, or columns of long slices, spread over threads",
    .bind = [](const Problem& p) -> Launcher {
      return [reduction = update_reduction(p)](const LaunchArgs& args) { scatter_at_tuples(args, reduction); };
    },
    .workspace = [](const Problem& p, int) -> std::int64_t {
      const std::int64_t offsets = offset_bytes(tuples_of(bind(p.input(1).dims, p.maximum)));
      const bool widened = update_reduction(p).has_value() && is_widened(p.input(0).dtype);
      return offsets +
             (widened ? p.input(0).elements().value(p.maximum) * static_cast<std::int64_t>(sizeof(float)) : 0);
    },
};

}  // namespace cermet::cpu
