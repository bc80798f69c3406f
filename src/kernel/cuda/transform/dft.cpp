// Host half of dft.
#include "kernel/cuda/device/transform/dft.hpp"
#include "kernel/cuda/movement/axes.hpp"
#include "kernel/cuda/task.hpp"
#include "kernel/kernel.hpp"
#include "op/schema/axes.hpp"

namespace cermet::cuda::transform_dft_file {
namespace {

struct Dft {
  int axis;
  std::int64_t length;  ///< 0: that of x
  bool inverse;
};

Dft dft_of(const Problem& p) {
  return {wrap_axis(p.attributes.integer("axis"), p.input(0).rank()), p.attributes.integer("length"),
          p.attributes.flag("inverse")};
}

void launch(const LaunchArgs& args, const Dft& d) {
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  if (y.elements() == 0) return;
  AxesBuilder<2> lines;
  for (int a = 0; a + 1 < x.shape.rank(); ++a)
    if (a != d.axis) lines.append(x.shape[a], {x.strides[a], y.strides[a]});
  const std::int64_t length = d.length > 0 ? d.length : x.shape[d.axis];
  const dft::Params params{.x = x.data,
                           .y = y.data,
                           .work = reinterpret_cast<dft::Complex*>(args.workspace),
                           .given = std::min(length, x.shape[d.axis]),
                           .length = length,
                           .results = y.shape[d.axis],
                           .x_stride = x.strides[d.axis],
                           .y_stride = y.strides[d.axis],
                           .complex = x.shape.back() == 2,
                           .inverse = d.inverse,
                           .lines = lines.make()};
  args.queue->run(0, lines.count(), params);
}

}  // namespace

extern const Kernel transform_dft;
const Kernel transform_dft{
    .name = "transform.dft",
    .op = OpKind::dft,
    .summary = "a block for each line: radix 2 for powers of two, else a direct sum",
    .bind = [](const Problem& p) -> Launcher { return [d = dft_of(p)](const LaunchArgs& args) { launch(args, d); }; },
    .workspace = [](const Problem& p, int) -> std::int64_t {
      const Dft d = dft_of(p);
      const Shape x = bind(p.input(0).dims, p.maximum);
      std::int64_t lines = 1;
      for (int a = 0; a + 1 < x.rank(); ++a) lines *= a == d.axis ? 1 : x[a];
      return lines * 2 * (d.length > 0 ? d.length : x[d.axis]) * static_cast<std::int64_t>(sizeof(dft::Complex));
    },
    .programs = [](const Problem& p) -> std::vector<Program> {
      return {
          {.header = "kernel/cuda/device/transform/dft.cuh",
           .task = fmt::format("cermet::dft::Task<cermet::dft::Config{{.type = {}}}>", device_name(p.input(0).dtype)),
           .threads = dft::threads}};
    }};

}  // namespace cermet::cuda::transform_dft_file
