// Operators that promise to work in place: the same memory for an operand and a result gives the same bits as separate
// memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "kernel/cpu/kernels.hpp"
#include "op/schema/case_data.hpp"
#include "op/schema/operator.hpp"
#include "select/bound_op.hpp"

namespace cermet {
namespace {

/// A result that overwrites an operand's memory.
struct Shared {
  std::size_t result, operand;
};

std::vector<OwnedTensor> separate_results(const Problem& problem) {
  std::vector<OwnedTensor> results;
  for (const TensorType& type : problem.outputs) results.emplace_back(type.dtype, bind(type.dims, {}));
  return results;
}

std::vector<TensorView> whole_views(const std::vector<OwnedTensor>& tensors) {
  std::vector<TensorView> views;
  for (const OwnedTensor& tensor : tensors) views.push_back(tensor.view);
  return views;
}

bool equal_bits(const TensorView& a, const TensorView& b) {
  const int trailing = std::min(1, a.shape.rank());
  const Rows left(a, trailing), right(b, trailing);
  const auto bytes = static_cast<std::size_t>(left.length()) * size_of(a.dtype);
  for (std::int64_t r = 0; bytes > 0 && r < left.count(); ++r)
    if (std::memcmp(left.row(r), right.row(r), bytes) != 0) return false;
  return true;
}

bool types_match(const Problem& problem, const std::vector<Shared>& shared) {
  return std::all_of(shared.begin(), shared.end(), [&](Shared s) {
    return s.result < problem.outputs.size() && problem.has(s.operand) &&
           problem.outputs[s.result] == problem.input(s.operand);
  });
}

void expect_same_bits_in_place(OpKind kind, const std::vector<Shared>& shared) {
  ThreadPool pool(3);
  int compared = 0;
  for (const Case& test_case : definition(kind).cases()) {
    const CaseData data = make_case_data(definition(kind), test_case);
    if (!types_match(data.problem, shared)) continue;
    for (const Kernel* kernel : cpu::kernels_of(kind)) {
      if (kernel->declines(data.problem)) continue;
      const CaseData overwritten = make_case_data(definition(kind), test_case);
      const std::vector<OwnedTensor> apart = separate_results(data.problem), rest = separate_results(data.problem);
      const std::vector<TensorView> expected = whole_views(apart);
      std::vector<TensorView> found = whole_views(rest);
      for (const Shared& s : shared) found[s.result] = overwritten.inputs[s.operand];
      BoundOp op(data.problem, *kernel, pool);
      op.run(data.inputs, expected);
      op.run(overwritten.inputs, found);
      for (std::size_t o = 0; o < expected.size(); ++o)
        EXPECT_TRUE(equal_bits(expected[o], found[o])) << test_case.name << ", " << kernel->name << ", result " << o;
      ++compared;
    }
  }
  EXPECT_GT(compared, 5);
}

TEST(InPlace, AddRmsNorm) { expect_same_bits_in_place(OpKind::add_rms_norm, {{0, 0}, {1, 1}}); }
TEST(InPlace, AddRmsNormQuant) { expect_same_bits_in_place(OpKind::add_rms_norm_quant, {{1, 1}}); }
TEST(InPlace, LayerNorm) { expect_same_bits_in_place(OpKind::layer_norm, {{0, 0}}); }
TEST(InPlace, Rope) { expect_same_bits_in_place(OpKind::rope, {{0, 0}, {1, 1}}); }
TEST(InPlace, Add) { expect_same_bits_in_place(OpKind::add, {{0, 1}}); }
TEST(InPlace, Silu) { expect_same_bits_in_place(OpKind::silu, {{0, 0}}); }

}  // namespace
}  // namespace cermet
