// Row programs of operators that are a norm or a gate with its quantization, as CUDA source.
#include "kernel/cuda/rowwise/row_source.hpp"

#include <gtest/gtest.h>

#include "kernel/cuda/kernels.hpp"
#include "kernel/cuda/task.hpp"

namespace cermet::cuda {
namespace {

int count(const std::string& text, std::string_view part) {
  int n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

std::string source_of(OpKind op, std::vector<std::optional<TensorType>> inputs, const Attributes& attributes) {
  const Region region(make_problem(definition(op), std::move(inputs), attributes));
  for (const Kernel* kernel : kernels_of(op))
    if (!kernel->declines(region)) return kernel->programs(region, {}).front().prelude;
  return "";
}

TEST(RowSource, ANormLeavesItsFactorOutWhereOneScaleIsEnough) {
  const auto norm = [](const Attributes& attributes) {
    return source_of(OpKind::rms_norm_quant, {TensorType{DType::bf16, {4, 512}}, TensorType{DType::bf16, {512}}},
                     attributes);
  };
  const std::string once = norm({});
  EXPECT_EQ(count(once, "quantize_row_and_factor<"), 1) << once;
  EXPECT_EQ(count(once, "reduce.template"), 0) << once;
  for (const Attributes& attributes : {Attributes{{"asymmetric", true}}, Attributes{{"granularity", "group"}}}) {
    const std::string twice = norm(attributes);
    EXPECT_EQ(count(twice, "quantize_row<"), 1) << twice;
    EXPECT_EQ(count(twice, "reduce.template operator()<Sum>"), 1) << twice;
  }
}

TEST(RowSource, HalvesOfAGateAreOneOperand) {
  const auto gate = [](bool interleaved) {
    return source_of(OpKind::silu_and_mul_quant, {TensorType{DType::bf16, {4, 512}}}, {{"interleaved", interleaved}});
  };
  const std::string halves = gate(false), pairs = gate(true);
  EXPECT_EQ(count(halves, "load_vector<width>(at0 + column)"), 1) << halves;
  EXPECT_EQ(count(halves, "load_vector<width>(at0 + 256 + column)"), 1) << halves;
  EXPECT_EQ(count(pairs, "load_pairs<width>(at0 + 2 * column)"), 1) << pairs;
  for (const std::string& text : {halves, pairs}) EXPECT_EQ(count(text, "p.operands["), 1) << text;
}

}  // namespace
}  // namespace cermet::cuda
