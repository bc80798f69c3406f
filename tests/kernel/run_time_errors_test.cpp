// Errors that only a run can detect: indices out of range, symbolic dimensions that turn out too short. Reference and
// kernels give the same messages.
#include <gtest/gtest.h>

#include "kernel/cpu/kernels.hpp"
#include "op/schema/case_data.hpp"
#include "op/schema/operator.hpp"
#include "op/schema/type_text.hpp"
#include "select/bound_op.hpp"

namespace cermet {
namespace {

template <class Body>
std::string message_of(Body body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::invalid_argument);
    return error.what();
  }
  return "";
}

struct BadRun {
  std::string call;
  std::vector<std::vector<double>> operands;
  std::string error;
};

class IndexErrors : public testing::TestWithParam<BadRun> {};

TEST_P(IndexErrors, ReferenceAndKernelsNameTheIndex) {
  const BadRun& run = GetParam();
  const OperatorCall call = parse_call(run.call);
  Case test_case{"", {}, call.attributes};
  for (std::size_t i = 0; i < call.inputs.size(); ++i)
    test_case.inputs.push_back(call.inputs[i] ? std::optional(CaseOperand{*call.inputs[i], values(run.operands.at(i))})
                                              : std::nullopt);
  const OpDefinition& op = *find_operator(call.name);
  const CaseData data = make_case_data(op, test_case);
  EXPECT_EQ(message_of([&] { run_reference(data); }), run.error);
  for (const int threads : {1, 3})
    for (const Kernel* kernel : cpu::kernels_of(op.kind)) {
      if (kernel->communicates) continue;  // calls ranks, of which there are none
      ThreadPool pool(threads);
      std::vector<OwnedTensor> outputs;
      std::vector<TensorView> views;
      for (const TensorType& type : data.problem.outputs) {
        outputs.emplace_back(type.dtype, cermet::bind(type.dims, {}));
        views.push_back(outputs.back().view);
      }
      BoundOp bound(data.problem, *kernel, pool);
      EXPECT_EQ(message_of([&] { bound.run(data.inputs, views); }), run.error) << kernel->name;
    }
}

const BadRun bad_runs[] = {
    {"embedding(i32[3], f32[4, 2])",
     {{0, 4, 1}, {0}},
     "embedding: operand 0 (ids): expected an index in [0, 4), found 4"},
    {"embedding(i64[3], bf16[4, 2])",
     {{0, -1, 1}, {0}},
     "embedding: operand 0 (ids): expected an index in [0, 4), found -1"},
    {"gather(f32[3, 2], i32[2])", {{0}, {0, 3}}, "gather: operand 1 (indices): expected an index in [-3, 3), found 3"},
    {"max_unpool(f32[1, 2, 2], i64[1, 2, 2])",
     {{1, 2, 3, 4}, {0, 1, 2, 4}},
     "max_unpool: operand 1 (indices): expected an index in [2, 4), that of its sample and channel, found 4"},
    {"max_unpool(f32[1, 2, 2], i64[1, 2, 2])",
     {{1, 2, 3, 4}, {0, 1, 1, 3}},
     "max_unpool: operand 1 (indices): expected an index in [2, 4), that of its sample and channel, found 1"},
    {"roi_align(f32[2, 1, 3, 3], f32[2, 4], i64[2])",
     {{0}, {0, 0, 1, 1}, {0, 2}},
     "roi_align: operand 2 (batch_indices): expected an index in [0, 2), found 2"},
    {"roi_align(f32[2, 1, 3, 3], f32[2, 4], i32[2])",
     {{0}, {0, 0, 1, 1}, {0, -1}},
     "roi_align: operand 2 (batch_indices): expected an index in [0, 2), found -1"},
    {"gather(f32[3, 2], i64[2]) {axis = 1}",
     {{0}, {0, -3}},
     "gather: operand 1 (indices): expected an index in [-2, 2), found -3"},
    {"scatter(f32[3, 2], i32[1, 2], f32[1, 2])",
     {{0}, {0, 3}, {0}},
     "scatter: operand 1 (indices): expected an index in [-3, 3), found 3"},
    {"scatter(bf16[3, 2], i32[1, 2], bf16[1, 2]) {reduction = \"sum\"}",
     {{0}, {0, -4}, {0}},
     "scatter: operand 1 (indices): expected an index in [-3, 3), found -4"},
    {"gather_elements(f32[3, 2], i32[2, 2])",
     {{0}, {0, 1, 3, 0}},
     "gather_elements: operand 1 (indices): expected an index in [-3, 3), found 3"},
    {"gather_nd(f32[3, 2], i64[2, 2])",
     {{0}, {0, 1, -3, -3}},
     "gather_nd: operand 1 (indices): expected an index in [-2, 2), found -3"},
    {"scatter_nd(f32[3, 2], i64[2, 1], f32[2, 2])",
     {{0}, {0, 3}, {0}},
     "scatter_nd: operand 1 (indices): expected an index in [-3, 3), found 3"},
    {"rnn(f32[3, 2, 1], f32[1, 2, 1], f32[1, 2, 2], -, i32[2])",
     {{0}, {0}, {0}, {}, {3, 4}},
     "rnn: operand 4 (sequence_lens): expected an index in [0, 4), found 4"},
    {"all_to_all(f32[2, 3], i32[2, 2])",
     {{0}, {0, -1, 0, 0}},
     "all_to_all: operand 1 (counts): expected counts in [0, 3], found -1"},
    {"all_to_all(f32[2, 3], i32[2, 2])",
     {{0}, {2, 2, 0, 0}},
     "all_to_all: operand 1 (counts): expected rank 0 to send and receive at most 3 rows, found 4 and 2"},
    {"all_to_all(f32[2, 3], i32[2, 2])",
     {{0}, {0, 2, 0, 2}},
     "all_to_all: operand 1 (counts): expected rank 1 to send and receive at most 3 rows, found 2 and 4"},
};

INSTANTIATE_TEST_SUITE_P(Calls, IndexErrors, testing::ValuesIn(bad_runs));

/// Runs a call whose symbol T stands for two elements, bound for up to ten.
std::string message_with_two(std::string_view text) {
  OperatorCall call = parse_call(text);
  const OpDefinition& op = *find_operator(call.name);
  Problem problem = make_problem(op, std::move(call.inputs), call.attributes);
  SymbolValues two;
  two.set(Symbol("T"), 2);
  problem.maximum.set(Symbol("T"), 10);
  ThreadPool pool(1);
  std::vector<OwnedTensor> memory;
  std::vector<TensorView> inputs, outputs;
  for (const auto& type : problem.inputs)
    inputs.push_back(memory.emplace_back(type->dtype, cermet::bind(type->dims, two)).view);
  for (const TensorType& type : problem.outputs) {
    Shape shape = cermet::bind(type.dims, two);
    for (int a = 0; a < shape.rank(); ++a) shape[a] = std::max<std::int64_t>(shape[a], 0);
    outputs.push_back(memory.emplace_back(type.dtype, shape).view);
  }
  BoundOp bound(problem, *cpu::kernels_of(op.kind).front(), pool);
  return message_of([&] { bound.run(inputs, outputs); });
}

TEST(SymbolicErrors, DimensionsThatTurnOutTooShort) {
  EXPECT_EQ(message_with_two("slice(f32[T, 4]) {starts = [0], ends = [3], axes = [0]}"),
            "slice: operand 0 (x): expected dimension 0 to be long enough for 3 positions, found [2, 4]");
  EXPECT_EQ(message_with_two("slice(f32[T, 4]) {starts = [-3], ends = [9223372036854775807], axes = [0]}"),
            "slice: operand 0 (x): expected dimension 0 to be long enough for 3 positions, found [2, 4]");
  EXPECT_EQ(message_with_two("pad(f32[T, 4]) {pads = [2, 0, 0, 0], mode = \"reflect\"}"),
            "pad: operand 0 (x): expected dimension 0 of at least 3 for these pads, found [2, 4]");
  EXPECT_EQ(message_with_two("topk(f32[4, T]) {k = 3}"),
            "topk: operand 0 (x): expected at least k = 3 elements in a row, found 2");
  EXPECT_EQ(message_with_two("slice(f32[T, 4]) {starts = [0], ends = [2], axes = [0]}"), "");
}

}  // namespace
}  // namespace cermet
