// Collectives differ in where a piece of a result comes from (collective.hpp); each define function below is one
// operator.
#include "op/collective.hpp"
#include "op/schema/operator.hpp"

#include "op/reduction.hpp"
#include "op/schema/axes.hpp"
#include "op/schema/infer.hpp"
#include "op/schema/reference.hpp"

namespace cermet {
namespace {

constexpr DTypeSet carried = dtypes::real | DTypeSet{DType::i32, DType::i8};

/// Ranks that call together, each with an operand of its own; 0 where all operands are stacked in one process.
std::int64_t calling_ranks(const Problem& p) {
  const std::int64_t ranks = p.attributes.integer("ranks");
  if (ranks < 0 || ranks > max_ranks) bad_attribute(p, "ranks", fmt::format("a number of ranks in [0, {}]", max_ranks));
  return ranks;
}

std::int64_t ranks_of(const Problem& p) {
  if (const std::int64_t ranks = calling_ranks(p); ranks > 0) return ranks;
  const Dim ranks = dim_of(p, 0, 0);
  if (!ranks.is_constant() || ranks.constant() < 1)
    bad_operand(p, 0, "a known number of ranks, at least 1, as dimension 0", p.input(0).to_string());
  return ranks.constant();
}

std::vector<TensorType> infer(const Problem& p, Collective kind) {
  const bool stacked = calling_ranks(p) == 0;
  const std::size_t axis = stacked ? 1 : 0;  // that is cut or joined
  expect_min_rank(p, 0, static_cast<int>(axis) + (cuts_operand(kind) || joins_result(kind) ? 1 : 0));
  const std::int64_t ranks = ranks_of(p);
  TensorType y = p.input(0);
  if (!stacked && y.rank() == Shape::max_rank)
    bad_operand(p, 0, fmt::format("less than {} dimensions", Shape::max_rank), y.to_string());
  if (has_root(kind) && (p.attributes.integer("root") < 0 || p.attributes.integer("root") >= ranks))
    bad_attribute(p, "root", fmt::format("a rank in [0, {})", ranks));
  if (joins_result(kind)) y.dims[axis] = y.dims[axis] * ranks;
  const bool even = kind != Collective::all_to_all || !p.has(1);
  if (cuts_operand(kind) && even) {
    const std::optional<Dim> part = exact_quotient(y.dims[axis], ranks);
    if (!part)
      bad_operand(p, 0, fmt::format("dimension {} to be a multiple of the {} ranks", axis, ranks),
                  p.input(0).to_string());
    if (kind != Collective::all_to_all) y.dims[axis] = *part;
  }
  if (!even) expect_dims(p, 1, {ranks, ranks}, "a count for each pair of ranks");
  return {std::move(y)};
}

/// y[rank, first .. first + count) = the same range of one rank's operand, or the reduction over all ranks.
void fill(const ReferenceCall& call, std::int64_t to, std::int64_t count, PieceSource source, std::int64_t from) {
  const TensorView &x = call.inputs[0], &y = call.outputs[0];
  const std::int64_t ranks = x.shape[0], per_rank = x.elements() / ranks;
  for (std::int64_t i = 0; i < count; ++i) {
    if (source.kind == PieceSource::Kind::nothing) store(y, to + i, 0);
    if (source.kind == PieceSource::Kind::one_rank) copy_element(x, source.rank * per_rank + from + i, y, to + i);
    if (source.kind != PieceSource::Kind::every_rank) continue;
    const Reduction reduction = reduction_from_name(call.attributes.text("reduction"));
    if (is_integer(x.dtype)) {
      IntegerReducer reducer = integer_reducer(reduction, x.dtype);
      for (std::int64_t r = 0; r < ranks; ++r) reducer.add(load_integer(x, r * per_rank + from + i));
      store_integer(y, to + i, reducer.result());
    } else {
      RealReducer reducer(reduction);
      for (std::int64_t r = 0; r < ranks; ++r) reducer.add(load(x, r * per_rank + from + i));
      store(y, to + i, reducer.result());
      note_magnitude(call, 0, to + i, reducer.magnitude());
    }
  }
}

void reference(const ReferenceCall& call, Collective kind) {
  const TensorView &x = call.inputs[0], &y = call.outputs[0];
  const std::int64_t ranks = x.shape[0], x_size = x.elements() / ranks, y_size = y.elements() / ranks;
  const std::int64_t pieces = joins_result(kind) || kind == Collective::all_to_all ? ranks : 1, piece = y_size / pieces;
  const std::int64_t cut = cuts_operand(kind) ? x_size / ranks : 0;
  for (std::int64_t r = 0; r < ranks; ++r)
    for (std::int64_t p = 0; p < pieces; ++p) {
      const PieceSource source = piece_source(kind, r, p, has_root(kind) ? call.attributes.integer("root") : 0);
      fill(call, r * y_size + p * piece, piece, source, source.piece * cut);
    }
}

/// all_to_all with counts: rank s sends counts[s][r] rows to rank r; rows are packed in rank order on both sides.
void uneven_reference(const ReferenceCall& call) {
  const TensorView& x = call.inputs[0];
  const std::int64_t ranks = x.shape[0], rows = x.shape[1], row = rows > 0 ? x.elements() / (ranks * rows) : 0;
  const PairCounts counts(call.inputs[1], rows);
  for (std::int64_t r = 0; r < ranks; ++r) {
    std::int64_t filled = 0;
    for (std::int64_t s = 0; s < ranks; ++s) {
      fill(call, (r * rows + filled) * row, counts.at(s, r) * row, {PieceSource::Kind::one_rank, s, 0},
           counts.sent_before(s, r) * row);
      filled += counts.at(s, r);
    }
    fill(call, (r * rows + filled) * row, (rows - filled) * row, {PieceSource::Kind::nothing, 0, 0}, 0);
  }
}

/// One rank's own operand: stacked where it is the only rank. What several processes compute is defined by the stacked
/// form, rank by rank.
void own_or_stacked(const ReferenceCall& call, Collective kind) {
  const std::int64_t ranks = call.attributes.integer("ranks");
  if (ranks > 1)
    fail(Status::unsupported, "{} of one of {} ranks: expected a communicator, which joins them, found one process",
         name_of(kind), ranks);
  const auto run = [&](const ReferenceCall& stacked) {
    stacked.has(1) ? uneven_reference(stacked) : reference(stacked, kind);
  };
  if (ranks == 0) return run(call);
  std::vector<TensorView> inputs(call.inputs.begin(), call.inputs.end());
  inputs[0] = stacked_alone(inputs[0]);
  const TensorView y = stacked_alone(call.outputs[0]);
  run({inputs, std::span(&y, 1), call.attributes, call.magnitude});
}

std::vector<Case> cases(Collective kind) {
  std::vector<Case> list;
  const auto add = [&](std::string name, DType t, Dims dims, Fill fill, Attributes attributes = {},
                       std::int64_t padding = 0) {
    if (has_root(kind)) attributes.set("root", dims[0].constant() - 1);
    list.push_back(
        {std::move(name), {CaseOperand{{t, std::move(dims)}, std::move(fill), padding}}, std::move(attributes)});
  };
  for (DType t : {DType::f32, DType::f16, DType::bf16, DType::i32, DType::i8}) {
    const Fill fill = is_integer(t) ? integers(-128, 127) : normal();
    for (std::int64_t ranks : {1, 2, 3, 8}) add(fmt::format("{}_ranks{}", name_of(t), ranks), t, {ranks, 24, 5}, fill);
    if (!has_reduction(kind)) continue;
    for (const char* reduction : {"prod", "max", "min", "avg"})
      add(fmt::format("{}_{}", name_of(t), reduction), t, {5, 15},
          reduction == std::string("prod") && is_integer(t) ? integers(-4, 4) : fill, {{"reduction", reduction}});
  }
  add("long", DType::bf16, {4, 1200, 3}, normal());
  add("strided", DType::f32, {3, 6, 9}, normal(), {}, 3);
  add("vectors", DType::f32, {3, 9}, normal());
  add("no_rows", DType::f32, {3, 0, 4}, normal());
  add("no_columns", DType::f32, {3, 6, 0}, normal());
  if (!cuts_operand(kind) && !joins_result(kind)) add("one_element_each", DType::f32, {7}, normal());
  for (const Attributes& own : {Attributes{{"ranks", 1}}, Attributes{{"ranks", 1}, {"group", "tensor"}}}) {
    list.push_back({fmt::format("own_{}", own.size()), {CaseOperand{{DType::bf16, {6, 5}}, normal(), 3}}, own});
    list.push_back({fmt::format("own_vector_{}", own.size()), {CaseOperand{{DType::i32, {6}}, integers(-9, 9)}}, own});
  }
  add("nan", DType::f32, {2, 4}, values({NAN, 1, INFINITY, 2, 3, 4, -INFINITY, 5}));
  return list;
}

std::vector<Case> uneven_cases() {
  std::vector<Case> list = cases(Collective::all_to_all);
  const CaseOperand counts{{DType::i32, {3, 3}}, values({1, 0, 4, 2, 2, 0, 0, 3, 1})};
  for (DType t : {DType::f32, DType::f16, DType::bf16, DType::i32, DType::i8})
    list.push_back({fmt::format("uneven_{}", name_of(t)), {CaseOperand{{t, {3, 5, 7}}, integers(-9, 9)}, counts}});
  list.push_back(
      {"uneven_strided",
       {CaseOperand{{DType::f32, {3, 5, 7}}, normal(), 3}, CaseOperand{{DType::i64, {3, 3}}, counts.fill, 2}}});
  list.push_back({"uneven_vectors", {CaseOperand{{DType::f32, {3, 5}}}, counts}});
  list.push_back({"uneven_own",
                  {CaseOperand{{DType::f32, {5, 7}}}, CaseOperand{{DType::i32, {1, 1}}, constant(3)}},
                  {{"ranks", 1}}});
  list.push_back(
      {"uneven_nothing", {CaseOperand{{DType::f32, {2, 4, 3}}}, CaseOperand{{DType::i32, {2, 2}}, constant(0)}}});
  list.push_back(
      {"uneven_full", {CaseOperand{{DType::f32, {2, 4, 3}}}, CaseOperand{{DType::i32, {2, 2}}, values({4, 0, 0, 4})}}});
  return list;
}

/// What every collective shares; `operand` and `result` spell the shapes.
OpSpec make(Collective kind, std::string_view summary, std::string_view semantics, std::string_view operand,
            std::string_view result) {
  OpSpec op{
      .category = "Collectives",
      .summary = summary,
      .semantics = semantics,
      .inputs = {{"x", carried, operand,
                  "the operand of every rank, stacked along dimension 0; with `ranks`, this rank's own, without that "
                  "dimension",
                  Mapping::barrier}},
      .outputs = {{"y", carried, result,
                   "the result of every rank, stacked along dimension 0; with `ranks`, this rank's own"}},
      .infer = [kind](const Problem& p) { return infer(p, kind); },
      .reference = [kind](const ReferenceCall& call) { own_or_stacked(call, kind); },
      .operations =
          [kind](const Problem& p) {
            return has_reduction(kind) ? static_cast<double>(p.input(0).elements().value(p.maximum)) : 0.0;
          },
      .rounding_depth =
          [kind](const Problem& p) {
            if (!has_reduction(kind)) return 0.0;
            const Reduction reduction = reduction_from_name(p.attributes.text("reduction"));
            return reduction == Reduction::max || reduction == Reduction::min ? 0.0
                                                                              : static_cast<double>(ranks_of(p)) + 1;
          },
      .cases = [kind] { return kind == Collective::all_to_all ? uneven_cases() : cases(kind); },
  };
  if (has_reduction(kind))
    op.attributes.push_back({"reduction",
                             std::string("sum"),
                             "how the ranks' elements are combined",
                             {"sum", "prod", "max", "min", "avg"}});
  if (has_root(kind)) op.attributes.push_back({"root", 0, "the rank that sends or receives"});
  op.attributes.push_back({"ranks", 0,
                           "0: the operands of all ranks are stacked in this process; else how many ranks call "
                           "together, each with its own"});
  op.attributes.push_back(
      {"group", std::string(), "with `ranks`: the communicator, by the name under which the graph's user gives it"});
  return op;
}

}  // namespace

std::string_view name_of(Collective kind) {
  constexpr std::array<std::string_view, 8> names{"all_reduce", "reduce_to",    "reduce_scatter", "all_gather",
                                                  "gather_to",  "scatter_from", "broadcast_from", "all_to_all"};
  return names[static_cast<std::size_t>(kind)];
}

TensorView stacked_alone(const TensorView& own) {
  TensorView view(own.data, own.dtype, {1}, {0});
  for (int a = 0; a < own.shape.rank(); ++a) {
    view.shape.push_back(own.shape[a]);
    view.strides.push_back(own.strides[a]);
  }
  return view;
}

PairCounts::PairCounts(const TensorView& counts, std::int64_t rows) : counts_(counts) {
  const std::int64_t ranks = counts.shape[0];
  for (std::int64_t a = 0; a < ranks; ++a) {
    std::int64_t sent = 0, received = 0;
    for (std::int64_t b = 0; b < ranks; ++b) {
      for (const std::int64_t count : {at(a, b), at(b, a)})
        require(count >= 0 && count <= rows, "all_to_all: operand 1 (counts): expected counts in [0, {}], found {}",
                rows, count);
      sent += at(a, b);
      received += at(b, a);
    }
    require(sent <= rows && received <= rows,
            "all_to_all: operand 1 (counts): expected rank {} to send and receive at most {} rows, found {} and {}", a,
            rows, sent, received);
  }
}

std::int64_t PairCounts::at(std::int64_t from, std::int64_t to) const {
  const std::int64_t i = from * counts_.strides[0] + to * counts_.strides[1];
  return counts_.dtype == DType::i64 ? counts_.as<const std::int64_t>()[i] : counts_.as<const std::int32_t>()[i];
}

std::int64_t PairCounts::sent_before(std::int64_t from, std::int64_t to) const {
  std::int64_t sum = 0;
  for (std::int64_t r = 0; r < to; ++r) sum += at(from, r);
  return sum;
}

std::int64_t PairCounts::received(std::int64_t to) const {
  std::int64_t sum = 0;
  for (std::int64_t r = 0; r < counts_.shape[0]; ++r) sum += at(r, to);
  return sum;
}

namespace all_reduce_op {
OpSpec define() {
  return make(Collective::all_reduce,
              "All ranks' operands reduced, with the result on every rank (MPI_Allreduce, ncclAllReduce)",
              "y[r] = reduce over s of x[s]. Floating: accumulated in float32 in the order of ranks, one rounding; avg "
              "divides the sum by the number of ranks. i8 and "
              "i32: sums are exact and clamped once, products are clamped after every factor, avg is rounded half to "
              "even. max and min give NaN where any rank has "
              "one.",
              "[R, ..]", "[R, ..]");
}
}  // namespace all_reduce_op

namespace reduce_to_op {
OpSpec define() {
  return make(Collective::reduce_to,
              "All ranks' operands reduced, with the result on one rank (MPI_Reduce, ncclReduce)",
              "y[root] = reduce over s of x[s], as in all_reduce; every other rank gets zeros.", "[R, ..]", "[R, ..]");
}
}  // namespace reduce_to_op

namespace reduce_scatter_op {
OpSpec define() {
  return make(Collective::reduce_scatter,
              "All ranks' operands reduced, with a piece of the result on each rank (MPI_Reduce_scatter_block, "
              "ncclReduceScatter)",
              "y[r] = reduce over s of the r-th of R equal pieces of x[s] along its first dimension, as in all_reduce.",
              "[R, N, ..]", "[R, N/R, ..]");
}
}  // namespace reduce_scatter_op

namespace all_gather_op {
OpSpec define() {
  return make(Collective::all_gather, "All ranks' operands concatenated, on every rank (MPI_Allgather, ncclAllGather)",
              "y[r] = x[0], x[1], .. one after another along their first dimension, bit for bit.", "[R, N, ..]",
              "[R, R*N, ..]");
}
}  // namespace all_gather_op

namespace gather_to_op {
OpSpec define() {
  return make(Collective::gather_to, "All ranks' operands concatenated, on one rank (MPI_Gather)",
              "y[root] = x[0], x[1], .. one after another along their first dimension, bit for bit; every other rank "
              "gets zeros.",
              "[R, N, ..]", "[R, R*N, ..]");
}
}  // namespace gather_to_op

namespace scatter_from_op {
OpSpec define() {
  return make(Collective::scatter_from, "One rank's operand split, with a piece on each rank (MPI_Scatter)",
              "y[r] = the r-th of R equal pieces of x[root] along its first dimension, bit for bit. The operands of "
              "other ranks are not read.",
              "[R, N, ..]", "[R, N/R, ..]");
}
}  // namespace scatter_from_op

namespace broadcast_from_op {
OpSpec define() {
  return make(Collective::broadcast_from, "One rank's operand copied to every rank (MPI_Bcast, ncclBroadcast)",
              "y[r] = x[root], bit for bit. The operands of other ranks are not read.", "[R, ..]", "[R, ..]");
}
}  // namespace broadcast_from_op

namespace all_to_all_op {
OpSpec define() {
  OpSpec op =
      make(Collective::all_to_all, "Every rank sends a piece to every rank (MPI_Alltoall, MPI_Alltoallv)",
           "Without counts: piece s of y[r] is piece r of x[s], both cut into R equal pieces along their first "
           "dimension. With counts: rank s sends "
           "counts[s][r] rows to rank r; its rows lie in x[s] from the start on, in the order of receivers; y[r] holds "
           "what it received in the order "
           "of senders, then zeros. No rank may send or receive more than the N rows it has room for. Bit for bit.",
           "[R, N, ..]", "[R, N, ..]");
  op.inputs.push_back(
      {"counts", dtypes::index, "[R, R]", "rows from each rank (row) to each rank (column)", Mapping::barrier, true});
  return op;
}
}  // namespace all_to_all_op

}  // namespace cermet
