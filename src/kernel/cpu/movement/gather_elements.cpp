#include "kernel/cpu/by_size.hpp"
#include "kernel/cpu/movement/axes.hpp"
#include "kernel/kernel.hpp"
#include "op/schema/axes.hpp"
#include "op/schema/reference.hpp"

namespace cermet::cpu {
namespace {

/// Rows of the result, each along the last axis. `step` is the stride of x along the indexed axis; where that is not
/// the last, x moves with the column.
template <class T, class Index>
void gather_row_positions(const LaunchArgs& args, int axis) {
  const TensorView &x = args.inputs[0], &indices = args.inputs[1], &y = args.outputs[0];
  const int last = x.shape.rank() - 1;
  StridedAxes<3> outer;
  for (int a = 0; a < last; ++a)
    outer.push_back(indices.shape[a], {a == axis ? 0 : x.strides[a], indices.strides[a], y.strides[a]});
  const std::int64_t columns = y.shape[last], size = x.shape[axis], step = x.strides[axis], move = axis == last ? 0 : 1;
  const std::int64_t grain = rows_per_thread(columns * static_cast<std::int64_t>(sizeof(T)));
  args.pool->parallel_for(outer.shape.elements(), grain, [&](std::int64_t begin, std::int64_t end) {
    Walk<3> walk(outer, begin);
    for (std::int64_t r = begin; r < end; ++r, walk.next()) {
      const T* from = x.as<const T>() + walk.offset[0];
      const Index* at = indices.as<const Index>() + walk.offset[1];
      T* to = y.as<T>() + walk.offset[2];
      for (std::int64_t c = 0; c < columns; ++c) {
        const std::int64_t index = at[c] < 0 ? at[c] + size : at[c];
        if (index < 0 || index >= size) checked_signed_index("gather_elements", "1 (indices)", at[c], size);
        to[c] = from[index * step + c * move];
      }
    }
  });
}

void gather_by_position(const LaunchArgs& args, int axis) {
  if (args.outputs[0].elements() == 0) return;
  by_element_size(size_of(args.inputs[0].dtype), [&](auto zero) {
    if (args.inputs[1].dtype == DType::i64) gather_row_positions<decltype(zero), std::int64_t>(args, axis);
    else gather_row_positions<decltype(zero), std::int32_t>(args, axis);
  });
}

}  // namespace

extern const Kernel movement_gather_elements{
    .name = "movement.gather_elements",
    .op = OpKind::gather_elements,
    .summary = "element after element of a row of the result; rows spread over threads",
    .bind = [](const Problem& p) -> Launcher {
      return [axis = wrap_axis(p.attributes.integer("axis"), p.input(0).rank())](const LaunchArgs& args) {
        gather_by_position(args, axis);
      };
    },
};

}  // namespace cermet::cpu
