// Host half of cumsum in tiles.
#include "kernel/cuda/device/reduce/cumsum_tiled.hpp"

#include "base/checked.hpp"
#include "kernel/cuda/config_text.hpp"
#include "kernel/cuda/movement/axes.hpp"
#include "kernel/kernel.hpp"
#include "op/schema/axes.hpp"

namespace cermet::cuda::reduce_cumsum_tiled_file {
namespace {

using cumsum_tiled::sector_bytes;
using cumsum_tiled::threads;
using cumsum_tiled::wide;

/// Assumed, not measured: shorter axes leave most slots of a tile idle, and so many lines fill a multiprocessor with a
/// thread for each.
constexpr std::int64_t fewest_rows = 128, most_lines_each = 512;

struct Scan {
  int axis;
  bool exclusive, reverse;
  std::int64_t narrow;  ///< lines of a sector
};

int axis_of(const Problem& p) { return wrap_axis(p.attributes.integer("axis"), p.input(0).rank()); }
int narrow_of(DType type) { return sector_bytes / static_cast<int>(size_of(type)); }

Decline declines(const Problem& p) {
  const int axis = axis_of(p), rank = p.input(0).rank();
  if (p.input(0).dtype == DType::f64) return "x is f64, whose sums keep the order of the definition";
  if (axis + 1 == rank) return "the axis is the last one";
  if (p.size(0, axis) < fewest_rows) return fmt::format("fewer than {} elements along the axis", fewest_rows);
  std::int64_t lines = 1;
  for (int a = 0; a < rank; ++a)
    if (a != axis) lines *= p.size(0, a);
  const std::int64_t most = most_lines_each * p.target->multiprocessors;
  if (lines > most) return fmt::format("more than {} lines, which fill the device with a thread for each", most);
  return {};
}

Program program(DType type, bool wraps, int width) {
  const int number_bytes = type == DType::i64 ? 16 : type == DType::i32 ? 8 : 4;
  const cumsum_tiled::Config config{.type = type, .wraps = wraps, .width = width};
  return {.header = "kernel/cuda/device/reduce/cumsum_tiled.cuh",
          .task = fmt::format("cermet::cumsum_tiled::Task<cermet::cumsum_tiled::Config{}>", config_text(config)),
          .threads = threads,
          .shared_bytes = threads * number_bytes};
}

/// Tiles of a sector's lines, and of 32.
std::vector<Program> programs(const Problem& p) {
  const DType type = p.input(0).dtype;
  const bool wraps = p.attributes.text("overflow") == "wrap";
  return {program(type, wraps, narrow_of(type)), program(type, wraps, wide)};
}

void launch(const LaunchArgs& args, const Scan& scan) {
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  if (x.elements() == 0) return;
  AxesBuilder<2> lines;
  for (int a = 0; a < x.shape.rank(); ++a)
    if (a != scan.axis) lines.append(x.shape[a], {x.strides[a], y.strides[a]});
  const cumsum_tiled::Params params{
      x.data,         y.data,       x.shape[scan.axis], x.strides[scan.axis], y.strides[scan.axis],
      scan.exclusive, scan.reverse, lines.make()};
  const bool is_wide = lines.count() >= std::int64_t{wide} * args.queue->target().multiprocessors;
  args.queue->run(is_wide ? 1 : 0, div_up(lines.count(), is_wide ? wide : scan.narrow), params);
}

}  // namespace

extern const Kernel scan_cumsum_tiled;
const Kernel scan_cumsum_tiled{
    .name = "scan.cumsum_tiled",
    .op = OpKind::cumsum,
    .summary = "tiles of neighbouring lines whose parts are added up side by side; for few lines and a long axis",
    .declines = declines,
    .bind = [](const Problem& p) -> Launcher {
      const Scan scan{axis_of(p), p.attributes.flag("exclusive"), p.attributes.flag("reverse"),
                      narrow_of(p.input(0).dtype)};
      return [scan](const LaunchArgs& args) { launch(args, scan); };
    },
    .programs = programs,
};

}  // namespace cermet::cuda::reduce_cumsum_tiled_file
