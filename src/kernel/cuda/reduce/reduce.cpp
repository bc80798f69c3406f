#include "kernel/cuda/reduce/reduce.hpp"

#include "base/checked.hpp"
#include "kernel/cuda/config_text.hpp"
#include "kernel/cuda/device/reduce/reduce.hpp"
#include "kernel/cuda/movement/axes.hpp"
#include "op/moved_view.hpp"
#include "op/schema/axes.hpp"

namespace cermet::cuda {
namespace {

/// Places in reduce_programs(): whole results by a block or, for short rows, by a warp; ranges of terms to float32, and
/// those to results.
enum ReduceProgram : std::size_t { whole, short_rows, ranges, ranges_to_results };

/// A warp reduces rows up to this long.
constexpr std::int64_t warp_terms = 1024;
/// Terms of a range, at least, where the terms of a result are split over blocks: of a row, and of a column, which 32
/// neighbours share a block with.
constexpr std::int64_t range_terms(bool rows) { return rows ? 4096 : 256; }
constexpr std::int64_t most_partials = 1 << 18;  ///< floats of the workspace

reduce::Kind kind_of(Reduction kind) {
  switch (kind) {
    case Reduction::sum: return reduce::Kind::sum;
    case Reduction::mean: return reduce::Kind::mean;
    case Reduction::prod: return reduce::Kind::prod;
    case Reduction::max: return reduce::Kind::max;
    case Reduction::min: return reduce::Kind::min;
  }
  return reduce::Kind::sum;
}

Program program_of(const ReducePlan& plan, DType x, DType out, int group) {
  // A mean is a sum that is divided at the end.
  const Reduction kind = plan.kind == Reduction::mean ? Reduction::sum : plan.kind;
  const reduce::Config config{.kind = kind_of(kind), .x = x, .out = out, .group = group};
  return {.header = "kernel/cuda/device/reduce/reduce.cuh",
          .task = fmt::format("cermet::reduce::{}<cermet::reduce::Config{}>", plan.rows ? "Rows" : "Columns",
                              config_text(config)),
          .threads = reduce::threads,
          .shared_bytes = plan.rows ? 256 : reduce::threads * 8 * 4};
}

/// Axes of x that are kept, with strides of x and y, and those that are reduced.
struct Parts {
  AxesBuilder<2> kept;
  AxesBuilder<1> reduced;
};

Parts parts_of(const TensorView& x, std::uint32_t reduced, const TensorView& y) {
  Parts parts;
  for (int a = 0, to = 0; a < x.shape.rank(); ++a) {
    if (reduced >> a & 1u) parts.reduced.append(x.shape[a], {x.strides[a]});
    else parts.kept.append(x.shape[a], {x.strides[a], y.strides[to++]});
  }
  return parts;
}

/// Types that float32 does not add up: a warp reduces each result in a wider one.
bool is_plain(DType dtype) { return !dtypes::real.contains(dtype); }

void enqueue_plain(const LaunchArgs& args, std::size_t first, const TensorView& x, const TensorView& y,
                   const Parts& parts) {
  const reduce::PlainParams params{x.data, y.data, parts.kept.make(), parts.reduced.make()};
  args.queue->run(first, div_up(params.kept.count, reduce::threads / 32), params);
  args.queue->declare({byte_range(x)}, {byte_range(y)});
}

/// Ranges that the terms of a result are split into, so that few results still use the whole device.
std::int64_t splits_of(const TaskQueue& queue, bool rows, std::int64_t blocks, std::int64_t terms,
                       std::int64_t results) {
  const std::int64_t idle = std::int64_t{queue.target().multiprocessors} * 4 / std::max<std::int64_t>(1, blocks);
  return std::max<std::int64_t>(
      1, std::min({idle, terms / range_terms(rows), most_partials / std::max<std::int64_t>(1, results)}));
}

/// Makes y from `splits` ranges that lie one after the other in the workspace as [splits, results].
void combine_ranges(const LaunchArgs& args, std::size_t first, const ReducePlan& plan, reduce::Params params,
                    std::int64_t splits, std::int64_t results) {
  params.x = args.workspace;
  params.splits = 1;
  params.split_terms = splits;
  params.split_stride = 0;
  params.vectors = 0;
  AxesBuilder<1> reduced;
  reduced.append(splits, {results});
  params.reduced = reduced.make();
  std::int64_t step = 1;  // partial results are dense, in the order of the kept axes
  for (int a = params.kept.rank - 1; a >= 0; --a) {
    params.kept.stride[0][a] = step;
    step *= params.kept.size[a];
  }
  args.queue->run(first + ranges_to_results, plan.rows ? results : div_up(results, reduce::column_lanes), params);
}

}  // namespace

std::vector<Program> reduce_programs(const ReducePlan& plan) {
  if (plan.x == DType::f64)
    return {{.header = "kernel/cuda/device/reduce/doubles.cuh",
             .task = fmt::format("cermet::reduce::Doubles<{}>", name_of(kind_of(plan.kind))),
             .threads = reduce::threads}};
  if (is_plain(plan.x))
    return {{.header = "kernel/cuda/device/reduce/integers.cuh",
             .task = fmt::format(
                 "cermet::reduce::Integers<cermet::reduce::IntegerConfig{}>",
                 config_text(reduce::IntegerConfig{.kind = kind_of(plan.kind), .type = plan.x, .wraps = plan.wraps})),
             .threads = reduce::threads}};
  return {program_of(plan, plan.x, plan.out, reduce::threads),
          program_of(plan, plan.x, plan.out, plan.rows ? 32 : reduce::threads),
          program_of(plan, plan.x, DType::f32, reduce::threads),
          program_of(plan, DType::f32, plan.out, reduce::threads)};
}

std::int64_t reduce_workspace(const ReducePlan& plan, std::int64_t terms) {
  return is_plain(plan.x) || terms < 2 * range_terms(plan.rows)
             ? 0
             : most_partials * static_cast<std::int64_t>(sizeof(float));
}

void enqueue_reduce(const LaunchArgs& args, std::size_t first, const ReducePlan& plan, const TensorView& x,
                    std::uint32_t reduced, const TensorView& y) {
  const Parts parts = parts_of(x, reduced, y);
  const std::int64_t results = parts.kept.count(), terms = parts.reduced.count();
  if (results == 0) return;
  if (is_plain(plan.x)) return enqueue_plain(args, first, x, y, parts);
  // Words of 16 bytes along the dense axis, which is a reduced one or, for columns, the last kept one.
  const std::int64_t width = 16 / byte_size(x.dtype);
  bool vectors = is_aligned(x.data, 16);
  if (plan.rows) {
    vectors = vectors && parts.reduced.run_length({true}, width) == width;
    for (int a = 0; a < parts.kept.rank(); ++a) vectors = vectors && parts.kept.strides(a)[0] % width == 0;
  } else {
    vectors = vectors && parts.kept.run_length({true, true}, width) == width;
    for (int a = 0; a < parts.reduced.rank(); ++a) vectors = vectors && parts.reduced.strides(a)[0] % width == 0;
  }
  const bool row_vectors = plan.rows && vectors;
  reduce::Params params{.x = x.data,
                        .y = y.data,
                        .splits = 1,
                        .split_terms = terms,
                        .split_stride = 0,
                        .divisor = static_cast<float>(terms),
                        .divides = plan.kind == Reduction::mean,
                        .vectors = vectors,
                        .kept = parts.kept.make(),
                        .reduced = parts.reduced.make(row_vectors ? width : 1, {true})};
  const bool warps = plan.rows && terms <= warp_terms;
  const std::int64_t blocks = plan.rows ? (warps ? div_up(results, reduce::threads / 32) : results)
                                        : div_up(results, reduce::column_lanes * (vectors ? width : 1));
  const std::int64_t splits = warps || !plan.splits ? 1 : splits_of(*args.queue, plan.rows, blocks, terms, results);
  if (splits == 1 || !args.workspace) {
    args.queue->run(first + (warps ? short_rows : whole), blocks, params);
    return args.queue->declare({byte_range(x)}, {byte_range(y)});
  }
  reduce::Params partial = params;
  partial.y = args.workspace;
  partial.divides = 0;
  partial.splits = splits;
  partial.split_terms = div_up(params.reduced.count, splits);
  partial.split_stride = results;
  std::int64_t step = 1;
  for (int a = partial.kept.rank - 1; a >= 0; --a) {
    partial.kept.stride[1][a] = step;
    step *= partial.kept.size[a];
  }
  args.queue->run(first + ranges, blocks * splits, partial);
  const ByteRange made{args.workspace, splits * results * static_cast<std::int64_t>(sizeof(float))};
  args.queue->declare({byte_range(x)}, {made});
  combine_ranges(args, first, plan, params, splits, results);
  args.queue->declare({made}, {byte_range(y)});
}

}  // namespace cermet::cuda

namespace cermet::cuda::reduce_reduce_file {
namespace {

std::uint32_t reduced_axes(const Problem& p) {
  std::uint32_t reduced = 0;
  for (const int axis : wrap_axes(p.attributes.integers("axes"), p.input(0).rank())) reduced |= 1u << axis;
  return reduced;
}

/// Whether terms of few results are split over blocks is a launch's to decide, unless a configuration says that they
/// are not.
std::vector<Config> configs(const Problem& p) {
  return is_plain(p.input(0).dtype) ? std::vector<Config>(1) : std::vector<Config>{{}, {{"splits", 0}}};
}

template <Reduction kind>
ReducePlan plan_of(const Problem& p, const Config& config = {}) {
  const int rank = p.input(0).rank();
  const bool rows = rank == 0 || (reduced_axes(p) >> (rank - 1) & 1u) != 0;
  const bool wraps = kind == Reduction::sum && p.attributes.text("overflow") == "wrap";
  return {kind, p.input(0).dtype, p.outputs[0].dtype, rows, wraps, config.find("splits").value_or(1) != 0};
}

template <Reduction kind>
Launcher bind(const Problem& p, const Config& config) {
  return [plan = plan_of<kind>(p, config), reduced = reduced_axes(p),
          keepdims = p.attributes.flag("keepdims")](const LaunchArgs& args) {
    const TensorView &x = args.inputs[0], &y = args.outputs[0];
    const TensorView without = without_axes(y, reduced, keepdims, x.shape.rank());
    enqueue_reduce(args, 0, plan, x, reduced, without);
  };
}

template <Reduction kind>
std::vector<Program> programs(const Problem& p) {
  return reduce_programs(plan_of<kind>(p));
}

template <Reduction kind>
std::int64_t workspace(const Problem& p, int) {
  std::int64_t terms = 1;
  for (const int axis : wrap_axes(p.attributes.integers("axes"), p.input(0).rank())) terms *= p.size(0, axis);
  return reduce_workspace(plan_of<kind>(p), terms);
}

template <Reduction kind>
Kernel make(const char* name, OpKind op) {
  return {
      .name = name,
      .op = op,
      .summary =
          "words of 16 bytes along the dense axis; a block, a warp or, where results are few, several blocks for each",
      .bind = bind<kind>,
      .workspace = workspace<kind>,
      .programs = programs<kind>,
      .configs = configs};
}

}  // namespace

extern const Kernel reduce_sum, reduce_mean, reduce_prod, reduce_max, reduce_min;
const Kernel reduce_sum = make<Reduction::sum>("reduce.sum", OpKind::reduce_sum);
const Kernel reduce_mean = make<Reduction::mean>("reduce.mean", OpKind::reduce_mean);
const Kernel reduce_prod = make<Reduction::prod>("reduce.prod", OpKind::reduce_prod);
const Kernel reduce_max = make<Reduction::max>("reduce.max", OpKind::reduce_max);
const Kernel reduce_min = make<Reduction::min>("reduce.min", OpKind::reduce_min);

}  // namespace cermet::cuda::reduce_reduce_file
