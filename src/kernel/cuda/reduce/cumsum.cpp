// Host half of cumsum.
#include "base/checked.hpp"
#include "kernel/cuda/config_text.hpp"
#include "kernel/cuda/device/reduce/scan.hpp"
#include "kernel/cuda/movement/axes.hpp"
#include "kernel/cuda/task.hpp"
#include "kernel/kernel.hpp"
#include "op/schema/axes.hpp"

namespace cermet::cuda::reduce_cumsum_file {
namespace {

struct Scan {
  int axis;
  bool by_line, exclusive, reverse;  ///< by_line: a block for each
};

void launch(const LaunchArgs& args, const Scan& scan) {
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  if (x.elements() == 0) return;
  AxesBuilder<2> lines;
  for (int a = 0; a < x.shape.rank(); ++a)
    if (a != scan.axis) lines.append(x.shape[a], {x.strides[a], y.strides[a]});
  const scan::Params params{
      x.data,         y.data,       x.shape[scan.axis], x.strides[scan.axis], y.strides[scan.axis],
      scan.exclusive, scan.reverse, lines.make()};
  args.queue->run(0, div_up(lines.count(), scan.by_line ? 1 : scan::threads), params);
}

Scan scan_of(const Problem& p) {
  const int rank = p.input(0).rank(), axis = wrap_axis(p.attributes.integer("axis"), rank);
  // A float64 sum has no better type to be added up in: it keeps the order of the definition.
  return {axis, axis + 1 == rank && p.input(0).dtype != DType::f64, p.attributes.flag("exclusive"),
          p.attributes.flag("reverse")};
}

}  // namespace

extern const Kernel scan_cumsum;
const Kernel scan_cumsum{
    .name = "scan.cumsum",
    .op = OpKind::cumsum,
    .summary = "a block for each row, in chunks; a thread for each line along other axes",
    .bind = [](const Problem& p) -> Launcher {
      return [scan = scan_of(p)](const LaunchArgs& args) { launch(args, scan); };
    },
    .programs = [](const Problem& p) -> std::vector<Program> {
      return {{.header = "kernel/cuda/device/reduce/scan.cuh",
               .task = fmt::format("cermet::scan::{}<cermet::scan::Config{}>", scan_of(p).by_line ? "Lines" : "Columns",
                                   config_text(scan::Config{.type = p.input(0).dtype,
                                                            .wraps = p.attributes.text("overflow") == "wrap"})),
               .threads = scan::threads,
               .shared_bytes = 256}};
    }};

}  // namespace cermet::cuda::reduce_cumsum_file
