// Collectives over operands that lie side by side in one memory: copies and reductions between slices of the stacked
// tensors.
#include "op/collective.hpp"

#include "base/checked.hpp"
#include "kernel/cuda/device/movement/exchange.hpp"
#include "kernel/cuda/movement/axes.hpp"
#include "kernel/cuda/movement/copy.hpp"
#include "kernel/cuda/reduce/reduce.hpp"
#include "kernel/rank_collective.hpp"
#include "op/moved_view.hpp"

namespace cermet::cuda::collectives_file {
namespace {

constexpr std::size_t copy = 0, reduction = 1;  // places in a kernel's programs

struct Settings {
  Collective kind;
  std::int64_t root;
  ReducePlan plan;
};

/// The slice of one rank: axis 0 is gone. `view` has at least one axis.
TensorView slice_of(const TensorView& view, std::int64_t rank) {
  TensorView slice = view;
  slice.data = element_at(view, rank * view.strides[0]);
  slice.shape = slice.strides = Shape();
  for (int a = 1; a < view.shape.rank(); ++a) {
    slice.shape.push_back(view.shape[a]);
    slice.strides.push_back(view.strides[a]);
  }
  return slice;
}

/// A copy between x and y from axes that are given one by one, outermost first.
struct Axis {
  std::int64_t size, from, to;
};
void enqueue(const LaunchArgs& args, const void* from, void* to, std::initializer_list<Axis> lead, int first_axis) {
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  CopyAxes axes;
  for (const Axis& axis : lead) axes.append(axis.size, {axis.from, axis.to});
  for (int a = first_axis; a < y.shape.rank(); ++a) axes.append(y.shape[a], {x.strides[a], y.strides[a]});
  enqueue_copy(*args.queue, copy, axes, from, to, byte_size(y.dtype));
}

void fill_zeros(const LaunchArgs& args, const TensorView& slice) {
  CopyAxes axes;
  for (int a = 0; a < slice.shape.rank(); ++a) axes.append(slice.shape[a], {0, slice.strides[a]});
  enqueue_copy(*args.queue, copy, axes, nullptr, slice.data, byte_size(slice.dtype));
}

/// Every slice but that of `root`.
void fill_others(const LaunchArgs& args, std::int64_t root) {
  const TensorView& y = args.outputs[0];
  for (const auto& [begin, end] : {std::pair(std::int64_t{0}, root), std::pair(root + 1, y.shape[0])}) {
    if (begin >= end) continue;
    TensorView others = y;
    others.data = element_at(y, begin * y.strides[0]);
    others.shape[0] = end - begin;
    fill_zeros(args, others);
  }
}

/// `to` = the reduction over ranks of x, or of the pieces of x that `to`, with ranks as its first axis, stands for.
void reduce_ranks(const LaunchArgs& args, const ReducePlan& plan, const TensorView& to, bool pieces) {
  TensorView x = args.inputs[0], y = to;
  if (pieces) {  // x as [ranks, ranks, N / ranks, ..]
    const TensorView original = x;
    x.shape = x.strides = Shape();
    for (int a = 0; a < original.shape.rank(); ++a) {
      x.shape.push_back(a == 1 ? original.shape[0] : original.shape[a]);
      x.strides.push_back(a == 1 ? original.strides[1] * y.shape[1] : original.strides[a]);
      if (a != 1) continue;
      x.shape.push_back(y.shape[1]);
      x.strides.push_back(original.strides[1]);
    }
  }
  if (x.shape.rank() == 1) {  // a column, so that the ranks are not the last axis, whose terms are spread over lanes
    for (Shape* list : {&x.shape, &x.strides, &y.shape, &y.strides}) list->push_back(1);
  }
  enqueue_reduce(args, reduction, plan, x, 1u, y);
}

void collective(const LaunchArgs& args, const Settings& settings) {
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  if (y.elements() == 0) return;
  const std::int64_t ranks = y.shape[0], root = settings.root;
  const void* root_x = element_at(x, root * x.strides[0]);
  void* root_y = element_at(y, root * y.strides[0]);
  const auto step = [](const TensorView& view) { return view.shape.rank() > 1 ? view.strides[1] : 0; };
  const std::int64_t x_row = step(x), y_row = step(y), y_rows = y.shape.rank() > 1 ? y.shape[1] : 1,
                     x_rows = x.shape.rank() > 1 ? x.shape[1] : 1;
  switch (settings.kind) {
    case Collective::all_reduce:
      reduce_ranks(args, settings.plan, slice_of(y, 0), false);
      if (ranks > 1) {
        CopyAxes axes;
        axes.append(ranks - 1, {0, y.strides[0]});
        for (int a = 1; a < y.shape.rank(); ++a) axes.append(y.shape[a], {y.strides[a], y.strides[a]});
        enqueue_copy(*args.queue, copy, axes, y.data, element_at(y, y.strides[0]), byte_size(y.dtype));
      }
      return;
    case Collective::reduce_to:
      reduce_ranks(args, settings.plan, slice_of(y, root), false);
      return fill_others(args, root);
    case Collective::reduce_scatter: return reduce_ranks(args, settings.plan, y, true);
    case Collective::all_gather:
      return enqueue(args, x.data, y.data,
                     {{ranks, 0, y.strides[0]}, {ranks, x.strides[0], x_rows * y_row}, {x_rows, x_row, y_row}}, 2);
    case Collective::gather_to:
      enqueue(args, x.data, root_y, {{ranks, x.strides[0], x_rows * y_row}, {x_rows, x_row, y_row}}, 2);
      return fill_others(args, root);
    case Collective::scatter_from:
      return enqueue(args, root_x, y.data, {{ranks, y_rows * x_row, y.strides[0]}, {y_rows, x_row, y_row}}, 2);
    case Collective::broadcast_from: return enqueue(args, root_x, y.data, {{ranks, 0, y.strides[0]}}, 1);
    case Collective::all_to_all: {
      const std::int64_t piece = y_rows / ranks;
      return enqueue(
          args, x.data, y.data,
          {{ranks, piece * x_row, y.strides[0]}, {ranks, x.strides[0], piece * y_row}, {piece, x_row, y_row}}, 2);
    }
  }
}

void uneven_all_to_all(const LaunchArgs& args) {
  const TensorView &x = args.inputs[0], &counts = args.inputs[1], &y = args.outputs[0];
  if (y.elements() == 0) return;
  const auto bytes = byte_size(x.dtype);
  AxesBuilder<2> row;
  for (int a = 2; a < x.shape.rank(); ++a) row.append(x.shape[a], {x.strides[a], y.strides[a]});
  std::int64_t run = row.run_length({true, true}, 16 / bytes);
  const auto fits = [&](std::int64_t n) {
    bool whole = is_aligned(x.data, n * bytes) && is_aligned(y.data, n * bytes);
    for (int a = 0; a < 2; ++a) whole = whole && x.strides[a] % n == 0 && y.strides[a] % n == 0;
    return whole;
  };
  while (run > 1 && !fits(run)) run /= 2;
  const exchange::Params params{.x = x.data,
                                .y = y.data,
                                .counts = counts.data,
                                .ranks = x.shape[0],
                                .rows = x.shape[1],
                                .counts_strides = {counts.strides[0], counts.strides[1]},
                                .x_strides = {x.strides[0] / run, x.strides[1] / run},
                                .y_strides = {y.strides[0] / run, y.strides[1] / run},
                                .wide_counts = counts.dtype == DType::i64,
                                .word_bytes = static_cast<std::uint32_t>(run * bytes),
                                .row = row.make(run, {true, true})};
  args.queue->run(0, params.ranks * params.rows, params);
}

ReducePlan plan_of(const Problem& p) {
  return {reduction_from_name(p.attributes.text("reduction")), p.input(0).dtype, p.outputs[0].dtype, false};
}

/// Dimensions of the stacked operand.
int stacked_rank(const Problem& p) { return p.input(0).rank() + (p.attributes.integer("ranks") > 0 ? 1 : 0); }

template <Collective kind>
Launcher bind_stacked(const Problem& p) {
  if (kind == Collective::all_to_all && p.has(1)) return uneven_all_to_all;
  const Settings settings{kind, has_root(kind) ? p.attributes.integer("root") : 0,
                          has_reduction(kind) ? plan_of(p) : ReducePlan{}};
  return [settings](const LaunchArgs& args) { collective(args, settings); };
}

template <Collective kind>
Launcher bind(const Problem& p) {
  return p.attributes.integer("ranks") == 1 ? stacked_launcher(bind_stacked<kind>(p)) : bind_stacked<kind>(p);
}

template <Collective kind>
std::vector<Program> programs(const Problem& p) {
  if (kind == Collective::all_to_all && p.has(1))
    return {{.header = "kernel/cuda/device/movement/exchange.cuh",
             .task = "cermet::exchange::Task",
             .threads = exchange::threads}};
  std::vector<Program> list{copy_program()};
  if (has_reduction(kind)) {
    const std::vector<Program> reductions = reduce_programs(plan_of(p));
    list.insert(list.end(), reductions.begin(), reductions.end());
  }
  return list;
}

template <Collective kind>
Kernel make(const char* name, OpKind op) {
  return {.name = name,
          .op = op,
          .summary = "all ranks in one memory: strided copies and reductions between slices of the stacked tensors",
          .declines = [](const Problem& p) -> Decline {
            if (Decline several = one_process_declines(p)) return several;
            // The pieces of the operand become an axis of their own.
            if (kind == Collective::reduce_scatter && stacked_rank(p) == Shape::max_rank)
              return fmt::format("{} dimensions", Shape::max_rank);
            return std::nullopt;
          },
          .bind = bind<kind>,
          .programs = programs<kind>};
}

}  // namespace

extern const Kernel local_all_reduce, local_reduce_to, local_reduce_scatter, local_all_gather, local_gather_to,
    local_scatter_from, local_broadcast_from, local_all_to_all;
const Kernel local_all_reduce = make<Collective::all_reduce>("local.all_reduce", OpKind::all_reduce);
const Kernel local_reduce_to = make<Collective::reduce_to>("local.reduce_to", OpKind::reduce_to);
const Kernel local_reduce_scatter = make<Collective::reduce_scatter>("local.reduce_scatter", OpKind::reduce_scatter);
const Kernel local_all_gather = make<Collective::all_gather>("local.all_gather", OpKind::all_gather);
const Kernel local_gather_to = make<Collective::gather_to>("local.gather_to", OpKind::gather_to);
const Kernel local_scatter_from = make<Collective::scatter_from>("local.scatter_from", OpKind::scatter_from);
const Kernel local_broadcast_from = make<Collective::broadcast_from>("local.broadcast_from", OpKind::broadcast_from);
const Kernel local_all_to_all = make<Collective::all_to_all>("local.all_to_all", OpKind::all_to_all);

}  // namespace cermet::cuda::collectives_file
