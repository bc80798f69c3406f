// Host half of scatter_nd: a copy, then the updates.
#include "kernel/cuda/device/movement/scatter_nd.hpp"
#include "base/checked.hpp"
#include "kernel/cuda/config_text.hpp"
#include "kernel/cuda/movement/axes.hpp"
#include "kernel/cuda/movement/coordinates.hpp"
#include "kernel/cuda/movement/copy.hpp"
#include "kernel/cuda/movement/update_step.hpp"
#include "op/operands.hpp"

namespace cermet::cuda::movement_scatter_nd_file {
namespace {

enum ScatterProgram : std::size_t { copy, find, apply };

/// Slices that coordinates can pick, and rows of coordinates.
struct Counts {
  std::int64_t places = 1, tuples = 1;

  Counts(const Shape& x, const Shape& indices) {
    for (int a = 0; a < static_cast<int>(indices.back()); ++a) places *= x[a];
    for (int a = 0; a + 1 < indices.rank(); ++a) tuples *= indices[a];
  }
  Counts(const Problem& p) : Counts(bind(p.input(0).dims, p.maximum), bind(p.input(1).dims, p.maximum)) {}
  std::int64_t place_bytes() const { return places * static_cast<std::int64_t>(sizeof(std::int32_t)); }
  std::int64_t tuple_bytes() const { return tuples * static_cast<std::int64_t>(sizeof(std::int64_t)); }
};

void launch(const LaunchArgs& args) {
  const TensorView &x = args.inputs[0], &indices = args.inputs[1], &updates = args.inputs[op::scatter_nd::updates],
                   &y = args.outputs[0];
  if (x.data != y.data)
    enqueue_copy(*args.queue, copy, {x.shape, x.data, x.strides, y.data, y.strides, byte_size(x.dtype)});
  if (updates.elements() == 0 || y.elements() == 0) return;
  const Counts counts(x.shape, indices.shape);
  const int lead = indices.shape.rank() - 1, n = static_cast<int>(indices.shape.back());
  AxesBuilder<2> tuples, slice;
  for (int a = 0; a < lead; ++a) tuples.append(indices.shape[a], {indices.strides[a], updates.strides[a]});
  for (int a = n; a < y.shape.rank(); ++a) slice.append(y.shape[a], {y.strides[a], updates.strides[lead + a - n]});
  auto* places = reinterpret_cast<std::int64_t*>(args.workspace);
  auto* first = reinterpret_cast<std::int32_t*>(args.workspace + counts.tuple_bytes());
  const scatter_nd::Params params{.y = y.data,
                                  .updates = updates.data,
                                  .places = places,
                                  .first = first,
                                  .last = first + counts.places,
                                  .coordinates = make_coordinates(y, 0, indices),
                                  .tuples = tuples.make(),
                                  .slice = slice.make()};
  args.queue->fill(params.first, scatter_nd::no_first, counts.place_bytes());
  args.queue->fill(params.last, scatter_nd::no_last, counts.place_bytes());
  args.queue->run(find, div_up(params.tuples.count, scatter_nd::threads), params);
  args.queue->run(apply, div_up(params.tuples.count * params.slice.count, scatter_nd::threads), params);
}

}  // namespace

extern const Kernel movement_scatter_nd;
const Kernel movement_scatter_nd{
    .name = "movement.scatter_nd",
    .op = OpKind::scatter_nd,
    .summary = "a copy, then a thread for each element of an update; those of a place in order",
    .declines = [](const Problem& p) -> Decline {
      if (Counts(p).tuples >= 0x7f7f7f7f) return "2^31 or more rows of coordinates";
      return std::nullopt;
    },
    .bind = [](const Problem&) -> Launcher { return launch; },
    .workspace = [](const Problem& p, int) -> std::int64_t {
      const Counts counts(p);
      return counts.tuple_bytes() + 2 * counts.place_bytes();
    },
    .programs = [](const Problem& p) -> std::vector<Program> {
      const UpdateStep step = update_step(p);
      const scatter_nd::Config config{.type = step.dtype, .reduction = step.reduction};
      const char* header = "kernel/cuda/device/movement/scatter_nd.cuh";
      return {copy_program(),
              {.header = header, .task = "cermet::scatter_nd::Find", .threads = scatter_nd::threads},
              {.header = header,
               .task = fmt::format("cermet::scatter_nd::Apply<cermet::scatter_nd::Config{}>", config_text(config)),
               .threads = scatter_nd::threads}};
    }};

}  // namespace cermet::cuda::movement_scatter_nd_file
