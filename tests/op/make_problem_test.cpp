// What a valid call resolves to. Calls that must fail are files in tests/op/must_fail.
#include <gtest/gtest.h>

#include "op/schema/operator.hpp"
#include "op/schema/type_text.hpp"

namespace cermet {
namespace {

Problem problem_of(std::string_view text) {
  OperatorCall call = parse_call(text);
  const OpDefinition* op = find_operator(call.name);
  EXPECT_NE(op, nullptr) << call.name;
  return make_problem(*op, std::move(call.inputs), call.attributes);
}

TEST(MakeProblem, FillsInDefaults) {
  const Problem problem = problem_of("rms_norm(bf16[T, 64], bf16[64])");
  EXPECT_EQ(problem.attributes.number("eps"), 1e-6);
  EXPECT_EQ(problem.attributes.number("weight_offset"), 0.0);
  EXPECT_EQ(problem.outputs.at(0).to_string(), "bf16[T, 64]");
}

TEST(MakeProblem, TakesAnIntegerForAFloat) {
  EXPECT_EQ(problem_of("rms_norm(f32[2, 4]) {weight_offset = 1}").attributes.number("weight_offset"), 1.0);
}

TEST(MakeProblem, MarksAbsentOperands) {
  const Problem short_call = problem_of("rms_norm(f32[2, 4])"), explicit_call = problem_of("rms_norm(f32[2, 4], -)");
  EXPECT_EQ(short_call.inputs.size(), 2u);
  EXPECT_FALSE(short_call.has(1));
  EXPECT_FALSE(explicit_call.has(1));
  EXPECT_FALSE(short_call.has(7));
}

TEST(MakeProblem, TextReadsBackAsTheSameProblem) {
  for (const char* text : {"rms_norm(bf16[T, 64], bf16[64]) {eps = 1e-05}", "rms_norm(f32[8*T+1, 4], -)",
                           "transpose(i8[2, 3]) {permutation = [1, 0]}", "concat(f32[1], f32[T])"}) {
    const Problem problem = problem_of(text);
    EXPECT_EQ(problem_of(problem.to_string()).to_string(), problem.to_string());
  }
}

TEST(MakeProblem, SizesComeFromTheSymbolsMaximum) {
  Problem problem = problem_of("rms_norm(f32[2*T, 4])");
  problem.maximum.set(Symbol("T"), 50);
  EXPECT_EQ(problem.size(0, 0), 100);
  EXPECT_EQ(problem.size(0, -1), 4);
  EXPECT_EQ(cost_of(problem).bytes, 2 * 100 * 4 * 4);
}

TEST(MakeProblem, VariadicOperandsRepeatTheLast) {
  EXPECT_EQ(problem_of("concat(f32[1], f32[2], f32[3], f32[4])").outputs.at(0).to_string(), "f32[10]");
  EXPECT_EQ(problem_of("concat(f32[T], f32[2], f32[2*T])").outputs.at(0).to_string(), "f32[3*T+2]");
}

TEST(MakeProblem, VariadicResultsFollowTheAttributes) {
  const Problem problem = problem_of("split(f32[T, 6]) {axis = 1, sizes = [1, -1, 2]}");
  ASSERT_EQ(problem.outputs.size(), 3u);
  EXPECT_EQ(problem.outputs[1].to_string(), "f32[T, 3]");
}

/// Symbolic dimensions through the operators that change shapes.
TEST(MakeProblem, SymbolsWorkOut) {
  const std::pair<const char*, const char*> table[] = {
      {"reshape(bf16[T, 4096]) {shape = [-1, 32, 128]}", "bf16[T, 32, 128]"},
      {"reshape(bf16[B, T, 64]) {shape = [0, 0, 4, 16]}", "bf16[B, T, 4, 16]"},
      {"reshape(bf16[T, 4, 16]) {shape = [0, -1]}", "bf16[T, 64]"},
      {"reshape(f32[4*T]) {shape = [-1, 4]}", "f32[T, 4]"},
      {"reshape(f32[T, 6]) {shape = [-1]}", "f32[6*T]"},
      {"slice(f32[T, 8]) {starts = [-1], ends = [9223372036854775807], axes = [0]}", "f32[1, 8]"},
      {"slice(f32[T, 8]) {starts = [1], ends = [-1], axes = [0]}", "f32[T-2, 8]"},
      {"slice(f32[T, 8]) {starts = [0], ends = [3], axes = [0]}", "f32[3, 8]"},
      {"split(f32[2*T, 8]) {parts = 2}", "f32[T, 8]"},
      {"transpose(f32[T, 8, 2]) {permutation = [1, 0, 2]}", "f32[8, T, 2]"},
      {"expand(f32[T, 1, 8]) {shape = [-1, 4, -1]}", "f32[T, 4, 8]"},
      {"pad(f32[T, 8]) {pads = [1, 0, 2, 0]}", "f32[T+3, 8]"},
      {"gather(f32[V, 8], i32[T])", "f32[T, 8]"},
      {"where(bool[T, 1], f32[T, 8], f32[])", "f32[T, 8]"},
      {"reduce_sum(f32[T, 8]) {axes = [0], keepdims = true}", "f32[1, 8]"},
      {"topk(bf16[T, 8]) {k = 2}", "bf16[T, 2]"},
      {"all_gather(f32[4, T, 8])", "f32[4, 4*T, 8]"},
      {"reduce_scatter(f32[4, 4*T, 8])", "f32[4, T, 8]"},
      {"embedding(i32[B, T], bf16[100, 8])", "bf16[B, T, 8]"},
  };
  for (const auto& [call, result] : table) EXPECT_EQ(problem_of(call).outputs.at(0).to_string(), result) << call;
}

}  // namespace
}  // namespace cermet
