#include "kernel/cpu/by_size.hpp"
#include "kernel/cpu/movement/axes.hpp"
#include "kernel/cpu/pointwise/tile_region.hpp"
#include "op/operands.hpp"

namespace cermet::cpu {
namespace {

/// Strides of an operand along the axes of the result; 0 where it is broadcast.
Shape broadcast_strides(const TensorView& view, const Shape& result) {
  Shape strides = result;
  const int lead = result.rank() - view.shape.rank();
  for (int a = 0; a < result.rank(); ++a)
    strides[a] = a < lead || view.shape[a - lead] == 1 ? 0 : view.strides[a - lead];
  return strides;
}

/// Along the innermost axis. The dense form is separate so that the compiler vectorizes it.
template <class T>
void choose(const std::uint8_t* condition, const T* x, const T* other, T* y, const std::array<std::int64_t, 4>& step,
            std::int64_t count) {
  if (step == std::array<std::int64_t, 4>{1, 1, 1, 1}) {
    for (std::int64_t i = 0; i < count; ++i) y[i] = condition[i] != 0 ? x[i] : other[i];
  } else {
    for (std::int64_t i = 0; i < count; ++i)
      y[i * step[3]] = condition[i * step[0]] != 0 ? x[i * step[1]] : other[i * step[2]];
  }
}

template <class T>
void where(const LaunchArgs& args) {
  const TensorView &condition = args.inputs[0], &x = args.inputs[1], &other = args.inputs[op::where::other],
                   &y = args.outputs[0];
  const Shape condition_strides = broadcast_strides(condition, y.shape), x_strides = broadcast_strides(x, y.shape),
              other_strides = broadcast_strides(other, y.shape);
  StridedAxes<4> all, outer;
  for (int a = 0; a < y.shape.rank(); ++a)
    all.append(y.shape[a], {condition_strides[a], x_strides[a], other_strides[a], y.strides[a]});
  if (all.rank() == 0) all.push_back(1, {1, 1, 1, 1});
  const int last = all.rank() - 1;
  for (int a = 0; a < last; ++a) outer.push_back(all.shape[a], all.strides_of(a));
  const std::array<std::int64_t, 4> step = all.strides_of(last);
  const std::int64_t length = all.shape[last], piece = std::min<std::int64_t>(length, 1 << 14),
                     pieces = (length + piece - 1) / piece;
  args.pool->parallel_for(
      outer.shape.elements() * pieces, rows_per_thread(piece * static_cast<std::int64_t>(sizeof(T))),
      [&](std::int64_t begin, std::int64_t end) {
        Walk<4> walk(outer, begin / pieces);
        for (std::int64_t unit = begin; unit < end; ++unit) {
          const std::int64_t first = unit % pieces * piece;
          const auto at = [&](std::size_t operand) { return walk.offset[operand] + first * step[operand]; };
          choose(condition.as<const std::uint8_t>() + at(0), x.as<const T>() + at(1), other.as<const T>() + at(2),
                 y.as<T>() + at(3), step, std::min(piece, length - first));
          if ((unit + 1) % pieces == 0) walk.next();
        }
      });
}

}  // namespace

extern const Kernel movement_where = with_regions({
    .name = "movement.where",
    .op = OpKind::where,
    .summary = "one pass by element size; broadcast operands do not advance; runs spread over threads",
    .bind = [](const Problem&) -> Launcher {
      return [](const LaunchArgs& args) {
        if (args.outputs[0].elements() > 0)
          by_element_size(size_of(args.outputs[0].dtype), [&](auto zero) { where<decltype(zero)>(args); });
      };
    },
});

}  // namespace cermet::cpu
