// ep_moe whose ranks have tokens of their own, rank by rank against the stacked operator that defines it.
#include <functional>
#include <random>

#include "graph/graph.hpp"
#include "op/mixture.hpp"
#include "op/schema/case_data.hpp"
#include "op/schema/reference.hpp"
#include "runtime/compile.hpp"
#include "tests/comm/threads.hpp"

namespace cermet::test {
namespace {

/// Part `rank` of `ranks` of a tensor's first dimension; without that dimension where it has one part each.
TensorView part_of(const TensorView& whole, int rank, std::int64_t ranks, bool drop) {
  TensorView part = whole;
  const std::int64_t count = whole.shape[0] / ranks;
  part.data = whole.as<std::byte>() + rank * count * whole.strides[0] * byte_size(whole.dtype);
  part.shape[0] = count;
  if (!drop) return part;
  TensorView row(part.data, part.dtype, {}, {});
  for (int axis = 1; axis < part.shape.rank(); ++axis)
    row.shape.push_back(part.shape[axis]), row.strides.push_back(part.strides[axis]);
  return row;
}

void copy_to(const TensorView& from, const TensorView& to) {
  for (std::int64_t i = 0; i < from.elements(); ++i) copy_element(from, i, to, i);
}

constexpr const char* names[] = {"x",        "router",        "gate_up",    "down",    "bias",
                                 "residual", "gate_up_scale", "down_scale", "x_scale", "hidden_scale"};

/// What rank `rank` has of operand `i` of a stacked case, of which it has the first `tokens` tokens.
TensorView own_operand(const CaseData& data, std::size_t i, int rank, std::int64_t ranks, std::int64_t tokens) {
  const TensorView& whole = data.inputs[i];
  if (i == mixture_x || i == mixture_residual) {
    TensorView own = part_of(whole, rank, ranks, true);
    own.shape[0] = tokens;
    return own;
  }
  const bool of_experts =
      i == mixture_gate_up || i == mixture_down || i == mixture_gate_up_scale || i == mixture_down_scale;
  return of_experts ? part_of(whole, rank, ranks, false) : whole;
}

/// One rank computes its part of a case twice, with so many of its tokens; "" or what is wrong. The counts are those of
/// a case whose ranks have all of their tokens.
std::string run_own(Communicator& group, const CaseData& data, const Expected& expected, const Attributes& given,
                    std::int64_t tokens, bool overlap, bool counts) {
  const std::int64_t ranks = group.size(), most = data.inputs[mixture_x].shape[1];
  Attributes attributes = given;
  attributes.set("group", std::string("model"));
  attributes.set("overlap", overlap);
  Graph graph;
  std::vector<ValueId> operands;
  std::vector<std::optional<TensorType>> types;
  for (std::size_t i = 0; i < data.problem.inputs.size(); ++i) {
    types.emplace_back();
    operands.emplace_back();
    if (!data.problem.has(i)) continue;
    types.back() = own_operand(data, i, group.rank(), ranks, most).type();
    const bool constant = data.problem.is_constant(i);
    if (i == mixture_x || i == mixture_residual) types.back()->dims[0] = Dim::symbol("T");
    operands.back() = constant ? graph.add_constant(names[i], *types.back()) : graph.add_input(names[i], *types.back());
  }
  const std::vector<ValueId> results = graph.apply_all(OpKind::ep_moe, operands, attributes);
  for (std::size_t i = 0; i < results.size(); ++i) graph.add_output(fmt::format("y{}", i), results[i]);
  ThreadPool pool(2);
  const std::unique_ptr<Device> device = make_cpu_device();
  WeightStore weights(
      [&](const std::string& name, std::int64_t slice, const TensorView& to) {
        const auto i = static_cast<std::size_t>(std::ranges::find(names, name) - names);
        const TensorView own = own_operand(data, i, group.rank(), ranks, most);
        copy_to(slice < 0 ? own : part_of(own, static_cast<int>(slice), own.shape[0], true), to);
      },
      pool);
  CompileOptions options;
  options.groups = {{"model", &group}};
  options.maximum.set(Symbol("T"), std::max<std::int64_t>(1, most));
  Executable executable = compile(std::move(graph), *device, weights, pool, options);
  EXPECT_EQ(executable.steps().back().kernel, "ranks.ep_moe");
  for (std::size_t i = 0; i < data.problem.inputs.size(); ++i)
    if (data.problem.has(i) && !data.problem.is_constant(i))
      executable.bind(names[i], own_operand(data, i, group.rank(), ranks, tokens));
  Expected own;
  for (std::size_t i = 0; i < 3; ++i) {
    const TensorView whole = expected.outputs[i].view;
    TensorView part = i == 0 ? part_of(whole, group.rank(), ranks, true) : whole;
    const auto first = static_cast<std::ptrdiff_t>(i == 0 ? group.rank() * part.elements() : 0);
    if (i == 0) part.shape[0] = tokens;
    own.outputs.emplace_back(part.dtype, part.shape);
    copy_to(part, own.outputs.back().view);
    const auto from = expected.magnitude[i].begin() + (expected.magnitude[i].empty() ? 0 : first);
    own.magnitude.emplace_back(
        from, expected.magnitude[i].empty() ? from : from + static_cast<std::ptrdiff_t>(part.elements()));
  }
  SymbolValues symbols;
  symbols.set(Symbol("T"), tokens);
  types[mixture_x]->dims[0] = tokens;
  if (types.size() > mixture_residual && types[mixture_residual]) types[mixture_residual]->dims[0] = tokens;
  const Problem problem = make_problem(definition(OpKind::ep_moe), types, attributes);
  std::string wrong;
  for (int turn = 0; turn < 2 && wrong.empty(); ++turn) {
    executable.run(symbols);
    std::vector<TensorView> found{executable.output("y0"), executable.output("y1"), executable.output("y2")};
    if (!counts) found.resize(1);
    wrong = compare(problem, own, found);
  }
  return wrong;
}

/// Runs every case of several ranks, of which rank r has tokens(r, most) tokens.
void run_cases(const std::function<std::int64_t(int rank, std::int64_t most)>& tokens, bool overlap, bool counts) {
  const OpDefinition& op = definition(OpKind::ep_moe);
  int compared = 0;
  for (const Case& stacked : op.cases()) {
    const auto ranks = static_cast<int>(std::get<std::int64_t>(*stacked.attributes.find("ranks")));
    if (ranks == 1) continue;
    const CaseData data = make_case_data(op, stacked);
    const Expected expected = run_reference(data);
    const std::int64_t most = data.inputs[mixture_x].shape[1];
    const std::vector<std::string> errors = run_ranks(ranks, [&](Communicator& group) {
      EXPECT_EQ(run_own(group, data, expected, stacked.attributes, tokens(group.rank(), most), overlap, counts), "")
          << stacked.name << " rank " << group.rank();
    });
    EXPECT_EQ(errors, std::vector<std::string>(static_cast<std::size_t>(ranks))) << stacked.name;
    ++compared;
  }
  EXPECT_GE(compared, 10);
}

TEST(EpMoe, RanksWithTheirOwnTokensComputeWhatTheStackedOperatorDefines) {
  run_cases([](int, std::int64_t most) { return most; }, false, true);
}

/// Every other rank has no tokens.
std::int64_t some(int rank, std::int64_t most) { return rank % 2 == 0 ? 0 : most - rank / 2; }

TEST(EpMoe, RanksMayHaveDifferentNumbersOfTokensAndNoneInHalvesThatOverlap) { run_cases(some, true, false); }

TEST(LongEpMoe, RanksMayHaveDifferentNumbersOfTokensAndNone) { run_cases(some, false, false); }

TEST(LongEpMoe, HalvesThatOverlapComputeTheSame) {
  run_cases([](int, std::int64_t most) { return most; }, true, true);
}

TEST(EpMoe, ARankThatLeavesEndsTheOthersWhichNameIt) {
  const OpDefinition& op = definition(OpKind::ep_moe);
  const Case stacked = op.cases().at(1);
  const CaseData data = make_case_data(op, stacked);
  const Expected expected = run_reference(data);
  for (const bool overlap : {false, true}) {
    const std::vector<std::string> errors = run_ranks(2, [&](Communicator& group) {
      if (group.rank() == 1) fail(Status::io, "out of paper");
      run_own(group, data, expected, stacked.attributes, data.inputs[mixture_x].shape[1], overlap, true);
    });
    EXPECT_NE(errors[0].find("rank 1 "), std::string::npos) << errors[0];
  }
}

TEST(EpMoe, OneRanksTokensNeedACommunicator) {
  const OpDefinition& op = definition(OpKind::ep_moe);
  const Problem problem = make_problem(op,
                                       {TensorType{DType::f32, {3, 8}}, TensorType{DType::f32, {4, 8}},
                                        TensorType{DType::f32, {2, 6, 8}}, TensorType{DType::f32, {2, 8, 3}}},
                                       {{"ranks", std::int64_t{2}}, {"k", std::int64_t{2}}});
  EXPECT_EQ(problem.outputs[0].to_string(), "f32[3, 8]");
  EXPECT_THROW(make_problem(op,
                            {TensorType{DType::f32, {3, 8}}, TensorType{DType::f32, {4, 8}},
                             TensorType{DType::f32, {4, 6, 8}}, TensorType{DType::f32, {4, 8, 3}}},
                            {{"ranks", std::int64_t{2}}, {"k", std::int64_t{2}}}),
               Error);
}

}  // namespace
}  // namespace cermet::test
