// Host half of unique.
#include <bit>

#include "base/checked.hpp"
#include "kernel/cuda/config_text.hpp"
#include "kernel/cuda/device/movement/unique.hpp"
#include "kernel/cuda/movement/axes.hpp"
#include "kernel/cuda/task.hpp"
#include "kernel/kernel.hpp"
#include "op/schema/axes.hpp"

namespace cermet::cuda::movement_unique_file {
namespace {

enum UniqueProgram : std::size_t { start, pass, groups, lists, values };

using Axis = std::optional<int>;

std::int64_t slices_of(const Shape& x, const Axis& axis) { return axis ? x[*axis] : x.elements(); }
/// Places of the sort.
std::int64_t padded(std::int64_t slices) {
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(slices, 1))));
}

void launch(const LaunchArgs& args, const Axis& axis, bool sorted) {
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  const auto list = [&](std::size_t output) { return args.outputs[output].as<std::int64_t>(); };
  const std::int64_t slices = slices_of(x.shape, axis);
  if (slices == 0) return args.queue->fill(list(4), 0, sizeof(std::int64_t));
  AxesBuilder<2> slice;
  AxesBuilder<1> elements;
  for (int a = 0; a < x.shape.rank(); ++a) {
    elements.append(x.shape[a], {x.strides[a]});
    if (axis && a != *axis) slice.append(x.shape[a], {x.strides[a], y.strides[a]});
  }
  unique::Params params{.x = x.data,
                        .y = y.data,
                        .indices = list(1),
                        .inverse = list(2),
                        .counts = list(3),
                        .count = list(4),
                        .order = reinterpret_cast<std::uint32_t*>(args.workspace),
                        .head = nullptr,
                        .number = nullptr,
                        .leads = nullptr,
                        .slices = slices,
                        .padded = padded(slices),
                        .sorted = sorted,
                        .size = 0,
                        .step = 0,
                        .x_step = axis ? x.strides[*axis] : 0,
                        .y_step = axis ? y.strides[*axis] : 1,
                        .slice = slice.make(),
                        .x_elements = elements.make()};
  params.head = params.order + params.padded;
  params.number = params.head + slices + 1;
  params.leads = params.number + slices;
  args.queue->run(start, div_up(params.padded, unique::threads), params);
  for (std::int64_t size = 2; size <= params.padded; size *= 2)
    for (std::int64_t step = size / 2; step > 0; step /= 2) {
      params.size = static_cast<std::uint32_t>(size);
      params.step = static_cast<std::uint32_t>(step);
      args.queue->run(pass, div_up(params.padded / 2, unique::threads), params);
    }
  args.queue->run(groups, 1, params);
  args.queue->run(lists, div_up(slices, unique::threads), params);
  args.queue->run(values, div_up(slices * params.slice.count, unique::threads), params);
}

Axis axis_of(const Problem& p) {
  const Ints& axis = p.attributes.integers("axis");
  return axis.empty() ? std::nullopt : Axis(wrap_axis(axis[0], p.input(0).rank()));
}

}  // namespace

extern const Kernel movement_unique;
const Kernel movement_unique{
    .name = "movement.unique",
    .op = OpKind::unique,
    .summary = "a bitonic sort of the numbers of elements or slices, then lists of where groups begin",
    .declines = [](const Problem& p) -> Decline {
      if (slices_of(bind(p.input(0).dims, p.maximum), axis_of(p)) >= std::int64_t{1} << 31)
        return "2^31 or more slices";
      return std::nullopt;
    },
    .bind = [](const Problem& p) -> Launcher {
      return [axis = axis_of(p), sorted = p.attributes.flag("sorted")](const LaunchArgs& args) {
        launch(args, axis, sorted);
      };
    },
    .workspace = [](const Problem& p, int) -> std::int64_t {
      const std::int64_t slices = slices_of(bind(p.input(0).dims, p.maximum), axis_of(p));
      return (padded(slices) + 3 * slices + 1) * static_cast<std::int64_t>(sizeof(std::uint32_t));
    },
    .programs = [](const Problem& p) -> std::vector<Program> {
      const std::string config =
          fmt::format("<cermet::unique::Config{}>", config_text(unique::Config{.type = p.input(0).dtype}));
      std::vector<Program> list;
      for (const std::string& task :
           {std::string("Start"), "Pass" + config, "Groups" + config, std::string("Lists"), "Values" + config})
        list.push_back({.header = "kernel/cuda/device/movement/unique.cuh",
                        .task = fmt::format("cermet::unique::{}", task),
                        .threads = unique::threads,
                        .shared_bytes = 512});
      return list;
    }};

}  // namespace cermet::cuda::movement_unique_file
