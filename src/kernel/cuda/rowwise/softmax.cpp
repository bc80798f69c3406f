// Host half of softmax: how its rows lie over threads.
#include "base/checked.hpp"
#include "kernel/cuda/device/rowwise/softmax_plain.hpp"
#include "kernel/cuda/movement/axes.hpp"
#include "kernel/cuda/rowwise/row_region_kernel.hpp"

namespace cermet::cuda::rowwise_softmax_file {
namespace {

void launch_plain(const LaunchArgs& args, bool logarithm) {
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  if (x.elements() == 0) return;
  AxesBuilder<2> rows;
  for (int a = 0; a + 1 < x.shape.rank(); ++a) rows.append(x.shape[a], {x.strides[a], y.strides[a]});
  const softmax_plain::Params params{x.as<const double>(), y.as<double>(), x.shape.back(), logarithm, rows.make()};
  constexpr std::int64_t rows_each = softmax_plain::threads / 32;
  args.queue->run(0, div_up(params.rows.count, rows_each), params);
}

}  // namespace

extern const Kernel rowwise_softmax;
const Kernel rowwise_softmax =
    row_kernel("rowwise.softmax", OpKind::softmax, "a row in registers: one pass over memory", [](const Problem& p) {
      return RowSpec{.width = vector_width({p.input(0).dtype, p.outputs[0].dtype})};
    });

extern const Kernel rowwise_softmax_plain;
const Kernel rowwise_softmax_plain{
    .name = "rowwise.softmax.plain",
    .op = OpKind::softmax,
    .summary = "rows of f64, a warp for each",
    .declines = [](const Problem& p) -> Decline {
      return p.input(0).dtype == DType::f64
                 ? std::nullopt
                 : Decline(fmt::format("x is {}; only f64 is computed in double", name_of(p.input(0).dtype)));
    },
    .bind = [](const Problem& p) -> Launcher {
      return [logarithm = p.attributes.flag("log")](const LaunchArgs& args) { launch_plain(args, logarithm); };
    },
    .programs = [](const Problem&) -> std::vector<Program> {
      return {{.header = "kernel/cuda/device/rowwise/softmax_plain.cuh",
               .task = "cermet::softmax_plain::Task",
               .threads = softmax_plain::threads,
               .held_columns = 0}};
    },
};

}  // namespace cermet::cuda::rowwise_softmax_file
