#include "kernel/cpu/by_size.hpp"
#include "kernel/cpu/movement/slices.hpp"
#include "kernel/kernel.hpp"

namespace cermet::cpu {
namespace {

template <class T>
void gather_slices(const LaunchArgs& args, int batch) {
  const TensorView &x = args.inputs[0], &indices = args.inputs[1], &y = args.outputs[0];
  const int lead = indices.shape.rank() - 1, n = static_cast<int>(indices.shape.back());
  StridedAxes<3> tuples;
  for (int a = 0; a < lead; ++a)
    tuples.push_back(indices.shape[a], {a < batch ? x.strides[a] : 0, indices.strides[a], y.strides[a]});
  const Slice slice(x, batch + n, y, lead);
  const auto bytes = static_cast<std::size_t>(slice.run) * sizeof(T);
  const std::int64_t grain = rows_per_thread(slice.elements() * static_cast<std::int64_t>(sizeof(T)));
  args.pool->parallel_for(tuples.shape.elements(), grain, [&](std::int64_t begin, std::int64_t end) {
    Walk<3> walk(tuples, begin);
    for (std::int64_t t = begin; t < end; ++t, walk.next()) {
      const T* from = x.as<const T>() + walk.offset[0] + slice_offset(x, batch, indices, walk.offset[1], "gather_nd");
      T* to = y.as<T>() + walk.offset[2];
      if (slice.elements() == 1) *to = *from;
      else slice.for_runs([&](std::int64_t a, std::int64_t b) { std::memcpy(to + b, from + a, bytes); });
    }
  });
}

void gather_at_tuples(const LaunchArgs& args, int batch) {
  if (args.outputs[0].elements() == 0) return;
  by_element_size(size_of(args.inputs[0].dtype), [&](auto zero) { gather_slices<decltype(zero)>(args, batch); });
}

}  // namespace

extern const Kernel movement_gather_nd{
    .name = "movement.gather_nd",
    .op = OpKind::gather_nd,
    .summary = "copies slices by coordinates; slices spread over threads",
    .bind = [](const Problem& p) -> Launcher {
      return [batch = static_cast<int>(p.attributes.integer("batch_dims"))](const LaunchArgs& args) {
        gather_at_tuples(args, batch);
      };
    },
};

}  // namespace cermet::cpu
