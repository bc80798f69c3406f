#include <cstring>

#include "kernel/cpu/by_size.hpp"
#include "kernel/cpu/index_list.hpp"
#include "kernel/kernel.hpp"
#include "op/schema/axes.hpp"
#include "op/schema/reference.hpp"

namespace cermet::cpu {
namespace {

std::int64_t index_at(const IndexList& indices, std::int64_t i, std::int64_t size) {
  return checked_signed_index("gather", "1 (indices)", indices[i], size);
}

/// The axis is not the last: whole rows are copied.
void gather_rows(const LaunchArgs& args, int axis) {
  const TensorView& x = args.inputs[0];
  const IndexList indices(args.inputs[1]);
  const Rows from(x), to(args.outputs[0]);
  const std::int64_t size = x.shape[axis], row_bytes = from.length() * byte_size(x.dtype);
  std::int64_t inner = 1;  // rows of one slice
  for (int a = axis + 1; a < x.shape.rank() - 1; ++a) inner *= x.shape[a];
  args.pool->parallel_for(to.count(), rows_per_thread(row_bytes), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      const std::int64_t slice = r / inner, outer = slice / indices.count(),
                         index = index_at(indices, slice % indices.count(), size);
      if (row_bytes > 0)
        std::memcpy(to.row(r), from.row((outer * size + index) * inner + r % inner),
                    static_cast<std::size_t>(row_bytes));
    }
  });
}

/// The axis is the last: single elements are copied from a row of x to a run of y.
template <class T>
void gather_elements(const LaunchArgs& args) {
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  const IndexList indices(args.inputs[1]);
  const Rows from(x), to(y, y.shape.rank() > 0 ? 1 : 0);
  args.pool->parallel_for(y.elements(), rows_per_thread(sizeof(T)), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t e = begin; e < end; ++e) {
      const std::int64_t index = index_at(indices, e % indices.count(), from.length());
      reinterpret_cast<T*>(to.row(e / to.length()))[e % to.length()] =
          reinterpret_cast<const T*>(from.row(e / indices.count()))[index];
    }
  });
}

void gather(const LaunchArgs& args, int axis) {
  const TensorView& x = args.inputs[0];
  if (axis + 1 < x.shape.rank()) return gather_rows(args, axis);
  by_element_size(size_of(x.dtype), [&](auto zero) { gather_elements<decltype(zero)>(args); });
}

}  // namespace

extern const Kernel movement_gather{
    .name = "movement.gather",
    .op = OpKind::gather,
    .summary = "copies rows by index, or elements where the axis is the last",
    .bind = [](const Problem& p) -> Launcher {
      return [axis = wrap_axis(p.attributes.integer("axis"), p.input(0).rank())](const LaunchArgs& args) {
        gather(args, axis);
      };
    },
};

}  // namespace cermet::cpu
