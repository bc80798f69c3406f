// Host half of nonzero.
#include "kernel/cuda/device/movement/nonzero.hpp"
#include "base/checked.hpp"
#include "kernel/cuda/movement/axes.hpp"
#include "kernel/cuda/task.hpp"
#include "kernel/kernel.hpp"

namespace cermet::cuda::movement_nonzero_file {
namespace {

enum NonzeroProgram : std::size_t { count, scan, write };

/// Bits of an element that make it differ from zero.
std::uint64_t mask_of(DType dtype) {
  const std::uint64_t all = ~std::uint64_t{0} >> (64 - 8 * size_of(dtype));
  return is_floating(dtype) ? all >> 1 : all;
}

void launch(const LaunchArgs& args) {
  const TensorView &x = args.inputs[0], &coordinates = args.outputs[0];
  auto* found = args.outputs[1].as<std::int64_t>();
  if (x.elements() == 0) return args.queue->fill(found, 0, sizeof(std::int64_t));
  AxesBuilder<1> axes;
  for (int a = 0; a < x.shape.rank(); ++a) axes.append_alone(x.shape[a], {x.strides[a]});
  const nonzero::Params params{.x = x.data,
                               .coordinates = coordinates.as<std::int64_t>(),
                               .count = found,
                               .before = reinterpret_cast<std::int64_t*>(args.workspace),
                               .mask = mask_of(x.dtype),
                               .stride = x.shape.rank() > 0 ? coordinates.strides[0] : 0,
                               .chunks = div_up(x.elements(), nonzero::chunk),
                               .element_bytes = static_cast<std::uint32_t>(size_of(x.dtype)),
                               .rank = x.shape.rank(),
                               .axes = axes.make()};
  args.queue->run(count, params.chunks, params);
  args.queue->run(scan, 1, params);
  args.queue->run(write, params.chunks, params);
}

}  // namespace

extern const Kernel movement_nonzero;
const Kernel movement_nonzero{
    .name = "movement.nonzero",
    .op = OpKind::nonzero,
    .summary =
        "counts of chunks, their running sum, then the coordinates of each chunk behind those of the chunks before",
    .bind = [](const Problem&) -> Launcher { return launch; },
    .workspace = [](const Problem& p, int) -> std::int64_t {
      return (div_up(p.input(0).elements().value(p.maximum), nonzero::chunk) + 1) *
             static_cast<std::int64_t>(sizeof(std::int64_t));
    },
    .programs = [](const Problem&) -> std::vector<Program> {
      std::vector<Program> list;
      for (const char* task : {"Count", "Scan", "Write"})
        list.push_back({.header = "kernel/cuda/device/movement/nonzero.cuh",
                        .task = fmt::format("cermet::nonzero::{}", task),
                        .threads = nonzero::threads,
                        .shared_bytes = 512});
      return list;
    }};

}  // namespace cermet::cuda::movement_nonzero_file
