#include <algorithm>

#include "kernel/cpu/by_size.hpp"
#include "kernel/cpu/movement/axes.hpp"
#include "kernel/cpu/movement/combine.hpp"
#include "kernel/cpu/movement/copy.hpp"
#include "kernel/cpu/scalar.hpp"
#include "kernel/kernel.hpp"
#include "op/operands.hpp"
#include "op/schema/axes.hpp"

namespace cermet::cpu {
namespace {

constexpr std::int64_t block_columns = 16;  // columns of one unit of work where the axis is not the last

/// A unit of work: every update of some columns, in index order. Columns are positions of the last axis, or one where
/// the last axis is indexed.
struct Unit {
  std::int64_t x, indices, updates, y;  ///< offsets of the first column
  std::int64_t columns;
};

struct Scatter {
  int axis;
  std::optional<Reduction> reduction;
};

/// Calls body(unit, thread) for disjoint units, spread over threads.
template <class Body>
void for_units(const LaunchArgs& args, int axis, Body&& body) {
  const TensorView &x = args.inputs[0], &indices = args.inputs[1], &updates = args.inputs[op::scatter::updates],
                   &y = args.outputs[0];
  const int last = x.shape.rank() - 1;
  StridedAxes<4> outer;
  for (int a = 0; a < last; ++a)
    if (a != axis)
      outer.push_back(indices.shape[a], {x.strides[a], indices.strides[a], updates.strides[a], y.strides[a]});
  const std::int64_t columns = axis == last ? 1 : indices.shape[last],
                     blocks = (columns + block_columns - 1) / block_columns;
  const std::int64_t units = outer.shape.elements() * blocks;
  args.pool->run([&](int thread) {
    const std::int64_t begin = units * thread / args.pool->size(), end = units * (thread + 1) / args.pool->size();
    Walk<4> walk(outer, blocks > 0 ? begin / blocks : 0);
    for (std::int64_t u = begin; u < end; ++u) {
      const std::int64_t first = u % blocks * block_columns;
      const auto& o = walk.offset;
      body(Unit{o[0] + first, o[1] + first, o[2] + first, o[3] + first, std::min(block_columns, columns - first)},
           thread);
      if ((u + 1) % blocks == 0) walk.next();
    }
  });
}

/// Calls body(column, target position along the axis, offset of the update) for every update of a unit, in index order.
template <class Body>
void for_positions(const LaunchArgs& args, int axis, const Unit& unit, Body&& body) {
  const TensorView &x = args.inputs[0], &indices = args.inputs[1], &updates = args.inputs[op::scatter::updates];
  for (std::int64_t i = 0; i < indices.shape[axis]; ++i)
    for (std::int64_t c = 0; c < unit.columns; ++c) {
      const std::int64_t at = unit.indices + i * indices.strides[axis] + c;
      const std::int64_t index =
          indices.dtype == DType::i64 ? indices.as<const std::int64_t>()[at] : indices.as<const std::int32_t>()[at];
      body(c, checked_signed_index("scatter", "1 (indices)", index, x.shape[axis]),
           unit.updates + i * updates.strides[axis] + c);
    }
}

/// Updates go straight into y: meet(target, update) replaces it, or combines the two in a type that accumulates exactly
/// as the result is stored.
template <class T, class Meet>
void scatter_directly(const LaunchArgs& args, int axis, Meet&& meet) {
  const TensorView &updates = args.inputs[op::scatter::updates], &y = args.outputs[0];
  const std::int64_t step = y.strides[axis];
  for_units(args, axis, [&](const Unit& unit, int) {
    for_positions(args, axis, unit, [&](std::int64_t c, std::int64_t position, std::int64_t from) {
      T& target = y.as<T>()[unit.y + position * step + c];
      target = meet(target, updates.as<const T>()[from]);
    });
  });
}

/// bf16 and f16: a unit's part of y is accumulated in float32 and rounded once.
template <class T>
void scatter_widened(const LaunchArgs& args, const Scatter& scatter) {
  const TensorView &updates = args.inputs[op::scatter::updates], &y = args.outputs[0];
  const std::int64_t size = y.shape[scatter.axis], step = y.strides[scatter.axis];
  for_units(args, scatter.axis, [&](const Unit& unit, int thread) {
    float* sums = reinterpret_cast<float*>(args.workspace) + thread * size * block_columns;
    T* target = y.as<T>() + unit.y;
    for (std::int64_t d = 0; d < size; ++d)
      for (std::int64_t c = 0; c < unit.columns; ++c)
        sums[d * block_columns + c] = format::to_float(target[d * step + c]);
    for_positions(args, scatter.axis, unit, [&](std::int64_t c, std::int64_t position, std::int64_t from) {
      float& sum = sums[position * block_columns + c];
      sum = combined(*scatter.reduction, sum, format::to_float(updates.as<const T>()[from]));
    });
    for (std::int64_t d = 0; d < size; ++d)
      for (std::int64_t c = 0; c < unit.columns; ++c) store_float(target[d * step + c], sums[d * block_columns + c]);
  });
}

void scatter_at_positions(const LaunchArgs& args, const Scatter& scatter) {
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  if (x.data != y.data) strided_copy(x.shape, x.data, x.strides, y.data, y.strides, size_of(x.dtype), *args.pool);
  if (args.inputs[1].elements() == 0) return;
  if (!scatter.reduction)
    return by_element_size(size_of(x.dtype), [&](auto zero) {
      scatter_directly<decltype(zero)>(args, scatter.axis,
                                       [](decltype(zero), decltype(zero) update) { return update; });
    });
  if (x.dtype == DType::bf16) return scatter_widened<format::bf16>(args, scatter);
  if (x.dtype == DType::f16) return scatter_widened<format::f16>(args, scatter);
  by_accumulating_dtype(x.dtype, [&](auto zero) {
    scatter_directly<decltype(zero)>(args, scatter.axis,
                                     [kind = *scatter.reduction](auto a, auto b) { return combined(kind, a, b); });
  });
}

int scattered_axis(const Problem& p) { return wrap_axis(p.attributes.integer("axis"), p.input(0).rank()); }

}  // namespace

extern const Kernel movement_scatter{
    .name = "movement.scatter",
    .op = OpKind::scatter,
    .summary = "copies, then applies the updates of disjoint columns in index order; columns spread over threads",
    .bind = [](const Problem& p) -> Launcher {
      const Scatter scatter{scattered_axis(p), update_reduction(p)};
      return [scatter](const LaunchArgs& args) { scatter_at_positions(args, scatter); };
    },
    .workspace = [](const Problem& p, int threads) -> std::int64_t {
      const bool widened =
          update_reduction(p).has_value() && dtypes::real.contains(p.input(0).dtype) && size_of(p.input(0).dtype) == 2;
      return widened ? p.size(0, scattered_axis(p)) * block_columns * static_cast<std::int64_t>(sizeof(float)) * threads
                     : 0;
    },
};

}  // namespace cermet::cpu
