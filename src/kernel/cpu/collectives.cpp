// Collectives over the stacked operands of one process: copies and reductions between slices of the stacked tensors.
#include "op/collective.hpp"

#include "kernel/cpu/movement/copy.hpp"
#include "kernel/cpu/reduce/reduce.hpp"
#include "kernel/rank_collective.hpp"

namespace cermet::cpu {
namespace {

/// Rows [first, first + count) along axis 1 of the slice of one rank; the whole slice where the tensor has no axis 1.
TensorView slice_of(const TensorView& stacked, std::int64_t rank, std::int64_t first, std::int64_t count) {
  TensorView slice = stacked;
  std::int64_t offset = rank * stacked.strides[0];
  slice.shape[0] = 1;
  if (stacked.shape.rank() > 1) {
    offset += first * stacked.strides[1];
    slice.shape[1] = count;
  }
  slice.data = stacked.as<std::byte>() + offset * byte_size(stacked.dtype);
  return slice;
}

void copy_slice(const TensorView& from, const TensorView& to, ThreadPool& pool) {
  strided_copy(to.shape, from.data, from.strides, to.data, to.strides, size_of(to.dtype), pool);
}

void fill_zeros(const TensorView& slice, ThreadPool& pool) {
  const std::uint64_t zero = 0;
  Shape still = slice.shape;
  for (int a = 0; a < still.rank(); ++a) still[a] = 0;
  strided_copy(slice.shape, &zero, still, slice.data, slice.strides, size_of(slice.dtype), pool);
}

/// `to` = the reduction over ranks of rows [first, ..) of x, in the order of ranks.
void reduce_slice(Reduction reduction, const TensorView& x, std::int64_t first, const TensorView& to,
                  ThreadPool& pool) {
  TensorView from = x, result = to;
  if (x.shape.rank() > 1) from = slice_of(x, 0, first, to.shape[1]);
  from.shape[0] = x.shape[0];
  result.shape = result.strides = Shape();
  for (int a = 1; a < to.shape.rank(); ++a) {
    result.shape.push_back(to.shape[a]);
    result.strides.push_back(to.strides[a]);
  }
  if (x.shape.rank() == 1) {  // as a column, because a reduction of the last axis would spread the ranks over lanes
    for (Shape* list : {&from.shape, &from.strides, &result.shape, &result.strides}) list->push_back(1);
  }
  reduce_axes(reduction, from, 1u, result, pool);
}

struct Settings {
  Collective kind;
  std::int64_t root;
  Reduction reduction;
};

void collective(const LaunchArgs& args, const Settings& settings) {
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  if (y.elements() == 0) return;
  const std::int64_t ranks = y.shape[0], rows = y.shape.rank() > 1 ? y.shape[1] : 1;
  const std::int64_t pieces = joins_result(settings.kind) || settings.kind == Collective::all_to_all ? ranks : 1,
                     piece = rows / pieces;
  for (std::int64_t r = 0; r < ranks; ++r)
    for (std::int64_t p = 0; p < pieces; ++p) {
      const PieceSource source = piece_source(settings.kind, r, p, settings.root);
      const TensorView to = slice_of(y, r, p * piece, piece);
      const std::int64_t first = source.piece * piece;
      if (source.kind == PieceSource::Kind::nothing) fill_zeros(to, *args.pool);
      else if (source.kind == PieceSource::Kind::one_rank)
        copy_slice(slice_of(x, source.rank, first, piece), to, *args.pool);
      else if (settings.kind == Collective::all_reduce && r > 0) copy_slice(slice_of(y, 0, 0, rows), to, *args.pool);
      else reduce_slice(settings.reduction, x, first, to, *args.pool);
    }
}

void uneven_all_to_all(const LaunchArgs& args) {
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  const std::int64_t ranks = x.shape[0], rows = x.shape[1];
  const PairCounts counts(args.inputs[1], rows);
  for (std::int64_t r = 0; r < ranks; ++r) {
    std::int64_t filled = 0;
    for (std::int64_t s = 0; s < ranks; ++s) {
      const std::int64_t count = counts.at(s, r);
      copy_slice(slice_of(x, s, counts.sent_before(s, r), count), slice_of(y, r, filled, count), *args.pool);
      filled += count;
    }
    fill_zeros(slice_of(y, r, filled, rows - filled), *args.pool);
  }
}

template <Collective kind>
Launcher bind_stacked(const Problem& p) {
  if (kind == Collective::all_to_all && p.has(1)) return uneven_all_to_all;
  const Settings settings{kind, has_root(kind) ? p.attributes.integer("root") : 0,
                          has_reduction(kind) ? reduction_from_name(p.attributes.text("reduction")) : Reduction::sum};
  return [settings](const LaunchArgs& args) { collective(args, settings); };
}

template <Collective kind>
Launcher bind(const Problem& p) {
  return p.attributes.integer("ranks") == 1 ? stacked_launcher(bind_stacked<kind>(p)) : bind_stacked<kind>(p);
}

constexpr const char* const summary =
    "all ranks in one process: copies and reductions between slices of the stacked tensors";

}  // namespace

extern const Kernel local_all_reduce{.name = "local.all_reduce",
                                     .op = OpKind::all_reduce,
                                     .summary = summary,
                                     .declines = one_process_declines,
                                     .bind = bind<Collective::all_reduce>};
extern const Kernel local_reduce_to{.name = "local.reduce_to",
                                    .op = OpKind::reduce_to,
                                    .summary = summary,
                                    .declines = one_process_declines,
                                    .bind = bind<Collective::reduce_to>};
extern const Kernel local_reduce_scatter{.name = "local.reduce_scatter",
                                         .op = OpKind::reduce_scatter,
                                         .summary = summary,
                                         .declines = one_process_declines,
                                         .bind = bind<Collective::reduce_scatter>};
extern const Kernel local_all_gather{.name = "local.all_gather",
                                     .op = OpKind::all_gather,
                                     .summary = summary,
                                     .declines = one_process_declines,
                                     .bind = bind<Collective::all_gather>};
extern const Kernel local_gather_to{.name = "local.gather_to",
                                    .op = OpKind::gather_to,
                                    .summary = summary,
                                    .declines = one_process_declines,
                                    .bind = bind<Collective::gather_to>};
extern const Kernel local_scatter_from{.name = "local.scatter_from",
                                       .op = OpKind::scatter_from,
                                       .summary = summary,
                                       .declines = one_process_declines,
                                       .bind = bind<Collective::scatter_from>};
extern const Kernel local_broadcast_from{.name = "local.broadcast_from",
                                         .op = OpKind::broadcast_from,
                                         .summary = summary,
                                         .declines = one_process_declines,
                                         .bind = bind<Collective::broadcast_from>};
extern const Kernel local_all_to_all{.name = "local.all_to_all",
                                     .op = OpKind::all_to_all,
                                     .summary = summary,
                                     .declines = one_process_declines,
                                     .bind = bind<Collective::all_to_all>};

}  // namespace cermet::cpu
