// Host half of scatter: a copy, then the updates.
#include "kernel/cuda/device/movement/scatter.hpp"
#include "base/checked.hpp"
#include "kernel/cuda/config_text.hpp"
#include "kernel/cuda/movement/axes.hpp"
#include "kernel/cuda/movement/copy.hpp"
#include "kernel/cuda/movement/update_step.hpp"
#include "op/operands.hpp"
#include "op/schema/axes.hpp"

namespace cermet::cuda::movement_scatter_file {
namespace {

enum ScatterProgram : std::size_t { copy, places, columns };

/// Steps (places times updates of a column) up to which a thread for each place is faster than one for each column,
/// which waits for memory at every update.
constexpr std::int64_t most_steps = std::int64_t{1} << 31;

struct Scatter {
  int axis;
  bool by_places_only;            ///< float32 sums do not fit a 16-bit result
  std::optional<bool> by_places;  ///< as a configuration says
};

bool is_16_bit_reduction(const Problem& p) {
  return p.attributes.text("reduction") != "none" &&
         (p.input(0).dtype == DType::bf16 || p.input(0).dtype == DType::f16);
}

/// Axes with the indexed one, of `size` places, or without it (size 0).
void set_axes(scatter::Params& params, const LaunchArgs& args, int axis, std::int64_t size) {
  const TensorView &indices = args.inputs[1], &updates = args.inputs[op::scatter::updates], &y = args.outputs[0];
  AxesBuilder<3> axes;
  params.axis = -1;
  for (int a = 0; a < y.shape.rank(); ++a) {
    if (a != axis) {
      axes.append_alone(indices.shape[a], {y.strides[a], indices.strides[a], updates.strides[a]});
    } else if (size > 0) {
      params.axis = axes.rank();
      axes.append_alone(size, {y.strides[a], 0, 0});
    }
  }
  params.axes = axes.make();
}

void launch(const LaunchArgs& args, const Scatter& scatter) {
  const TensorView &x = args.inputs[0], &indices = args.inputs[1], &updates = args.inputs[op::scatter::updates],
                   &y = args.outputs[0];
  if (x.data != y.data)
    enqueue_copy(*args.queue, copy, {x.shape, x.data, x.strides, y.data, y.strides, byte_size(x.dtype)});
  if (indices.elements() == 0 || y.elements() == 0) return;
  const int axis = scatter.axis;
  scatter::Params params{.y = y.data,
                         .indices = indices.data,
                         .updates = updates.data,
                         .wide_indices = indices.dtype == DType::i64,
                         .axis = -1,
                         .size = y.shape[axis],
                         .count = indices.shape[axis],
                         .y_stride = y.strides[axis],
                         .indices_stride = indices.strides[axis],
                         .updates_stride = updates.strides[axis],
                         .axes = {}};
  const bool few =
      static_cast<double>(indices.elements()) * static_cast<double>(params.size) <= static_cast<double>(most_steps);
  const bool by_places = scatter.by_places_only || scatter.by_places.value_or(few);
  set_axes(params, args, axis, by_places ? params.size : 0);
  args.queue->run(by_places ? places : columns, div_up(params.axes.count, scatter::threads), params);
}

}  // namespace

extern const Kernel movement_scatter;
const Kernel movement_scatter{
    .name = "movement.scatter",
    .op = OpKind::scatter,
    .summary = "a copy, then a thread for each place or each column, in index order and without atomics",
    .bind = [](const Problem& p, const Config& config) -> Launcher {
      const auto forced = config.find("by_places");
      const Scatter scatter{wrap_axis(p.attributes.integer("axis"), p.input(0).rank()), is_16_bit_reduction(p),
                            forced ? std::optional(*forced != 0) : std::nullopt};
      return [scatter](const LaunchArgs& args) { launch(args, scatter); };
    },
    .programs = [](const Problem& p) -> std::vector<Program> {
      const UpdateStep step = update_step(p);
      const scatter::Config config{.type = step.dtype, .reduction = step.reduction};
      const auto program = [&](const char* task) {
        return Program{.header = "kernel/cuda/device/movement/scatter.cuh",
                       .task = fmt::format("cermet::scatter::{}<cermet::scatter::Config{}>", task, config_text(config)),
                       .threads = scatter::threads};
      };
      std::vector<Program> list{copy_program(), program("Elements")};
      if (!is_16_bit_reduction(p)) list.push_back(program("Columns"));
      return list;
    },
    .configs =
        [](const Problem& p) {
          return is_16_bit_reduction(p) ? std::vector<Config>(1)
                                        : std::vector<Config>{{}, {{"by_places", 1}}, {{"by_places", 0}}};
        }};

}  // namespace cermet::cuda::movement_scatter_file
