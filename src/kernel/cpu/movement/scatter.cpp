#include <algorithm>
#include <cmath>

#include "format/element.hpp"
#include "kernel/cpu/by_size.hpp"
#include "kernel/cpu/movement/axes.hpp"
#include "kernel/cpu/movement/copy.hpp"
#include "kernel/kernel.hpp"
#include "op/axes.hpp"
#include "op/reduction.hpp"
#include "op/reference.hpp"

namespace cermet::cpu {
namespace {

constexpr std::int64_t block_columns = 16;  // columns of one unit of work where the axis is not the last

/// A unit of work: every update of some columns, in index order. Columns are positions of the last axis, or one where the last axis is indexed.
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
  const TensorView &x = args.inputs[0], &indices = args.inputs[1], &updates = args.inputs[2], &y = args.outputs[0];
  const int last = x.shape.rank() - 1;
  StridedAxes<4> outer;
  for (int a = 0; a < last; ++a)
    if (a != axis) outer.push_back(indices.shape[a], {x.strides[a], indices.strides[a], updates.strides[a], y.strides[a]});
  const std::int64_t columns = axis == last ? 1 : indices.shape[last], blocks = (columns + block_columns - 1) / block_columns;
  const std::int64_t units = outer.shape.elements() * blocks;
  args.pool->run([&](int thread) {
    const std::int64_t begin = units * thread / args.pool->size(), end = units * (thread + 1) / args.pool->size();
    Walk<4> walk(outer, blocks > 0 ? begin / blocks : 0);
    for (std::int64_t u = begin; u < end; ++u) {
      const std::int64_t first = u % blocks * block_columns;
      const auto& o = walk.offset;
      body(Unit{o[0] + first, o[1] + first, o[2] + first, o[3] + first, std::min(block_columns, columns - first)}, thread);
      if ((u + 1) % blocks == 0) walk.next();
    }
  });
}

/// Calls body(column, target position along the axis, offset of the update) for every update of a unit, in index order.
template <class Body>
void for_updates(const LaunchArgs& args, int axis, const Unit& unit, Body&& body) {
  const TensorView &x = args.inputs[0], &indices = args.inputs[1], &updates = args.inputs[2];
  for (std::int64_t i = 0; i < indices.shape[axis]; ++i)
    for (std::int64_t c = 0; c < unit.columns; ++c) {
      const std::int64_t at = unit.indices + i * indices.strides[axis] + c;
      const std::int64_t index = indices.dtype == DType::i64 ? indices.as<const std::int64_t>()[at] : indices.as<const std::int32_t>()[at];
      body(c, checked_signed_index("scatter", "1 (indices)", index, x.shape[axis]), unit.updates + i * updates.strides[axis] + c);
    }
}

template <class T>
T combined(Reduction kind, T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    switch (kind) {
      case Reduction::prod: return a * b;
      case Reduction::max: return a > b || a != a ? a : b;
      case Reduction::min: return a < b || a != a ? a : b;
      default: return a + b;
    }
  } else {
    IntegerReducer step(kind, std::numeric_limits<T>::min(), std::numeric_limits<T>::max());
    step.add(a);
    step.add(b);
    return static_cast<T>(step.result());
  }
}

/// Updates go straight into y: no reduction, or one whose type accumulates exactly as the result is stored.
template <class T>
void scatter_directly(const LaunchArgs& args, const Scatter& scatter) {
  const TensorView &updates = args.inputs[2], &y = args.outputs[0];
  const std::int64_t step = y.strides[scatter.axis];
  for_units(args, scatter.axis, [&](const Unit& unit, int) {
    for_updates(args, scatter.axis, unit, [&](std::int64_t c, std::int64_t position, std::int64_t from) {
      T& target = y.as<T>()[unit.y + position * step + c];
      const T update = updates.as<const T>()[from];
      if constexpr (std::is_signed_v<T>) target = scatter.reduction ? combined(*scatter.reduction, target, update) : update;
      else target = update;  // moved by element size
    });
  });
}

/// bf16 and f16: a unit's part of y is accumulated in float32 and rounded once.
template <class T>
void scatter_widened(const LaunchArgs& args, const Scatter& scatter) {
  const TensorView &updates = args.inputs[2], &y = args.outputs[0];
  const std::int64_t size = y.shape[scatter.axis], step = y.strides[scatter.axis];
  for_units(args, scatter.axis, [&](const Unit& unit, int thread) {
    float* sums = reinterpret_cast<float*>(args.workspace) + thread * size * block_columns;
    T* target = y.as<T>() + unit.y;
    for (std::int64_t d = 0; d < size; ++d)
      for (std::int64_t c = 0; c < unit.columns; ++c) sums[d * block_columns + c] = format::to_float(target[d * step + c]);
    for_updates(args, scatter.axis, unit, [&](std::int64_t c, std::int64_t position, std::int64_t from) {
      float& sum = sums[position * block_columns + c];
      sum = combined(*scatter.reduction, sum, format::to_float(updates.as<const T>()[from]));
    });
    for (std::int64_t d = 0; d < size; ++d)
      for (std::int64_t c = 0; c < unit.columns; ++c) {
        if constexpr (std::is_same_v<T, format::bf16>) target[d * step + c] = format::to_bf16(sums[d * block_columns + c]);
        else target[d * step + c] = format::to_f16(sums[d * block_columns + c]);
      }
  });
}

void launch(const LaunchArgs& args, const Scatter& scatter) {
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  if (x.data != y.data) strided_copy(x.shape, x.data, x.strides, y.data, y.strides, size_of(x.dtype), *args.pool);
  if (args.inputs[1].elements() == 0) return;
  if (!scatter.reduction) return by_element_size(size_of(x.dtype), [&](auto zero) { scatter_directly<decltype(zero)>(args, scatter); });
  switch (x.dtype) {
    case DType::f32: return scatter_directly<float>(args, scatter);
    case DType::bf16: return scatter_widened<format::bf16>(args, scatter);
    case DType::f16: return scatter_widened<format::f16>(args, scatter);
    case DType::i32: return scatter_directly<std::int32_t>(args, scatter);
    default: return scatter_directly<std::int64_t>(args, scatter);
  }
}

int axis_of(const Problem& p) { return wrap_axis(p.attributes.integer("axis"), p.input(0).rank()); }

}  // namespace

extern const Kernel movement_scatter{
    .name = "movement.scatter",
    .op = OpKind::scatter,
    .summary = "copies, then applies the updates of disjoint columns in index order; columns spread over threads",
    .bind = [](const Problem& p) -> Launcher {
      const std::string& name = p.attributes.text("reduction");
      const Scatter scatter{axis_of(p), name == "none" ? std::nullopt : std::optional(reduction_from_name(name))};
      return [scatter](const LaunchArgs& args) { launch(args, scatter); };
    },
    .workspace = [](const Problem& p, int threads) -> std::int64_t {
      const bool widened = p.attributes.text("reduction") != "none" && size_of(p.input(0).dtype) == 2;
      return widened ? p.size(0, axis_of(p)) * block_columns * static_cast<std::int64_t>(sizeof(float)) * threads : 0;
    },
};

}  // namespace cermet::cpu
