// Every CUDA kernel bound to cases whose first dimension is a symbol: bound once, it computes what it does for the
// number.
#include "kernel/cuda/kernels.hpp"
#include "op/schema/operator.hpp"
#include "tests/kernel_cuda/device_case.hpp"
#include "tests/support/every_operator.hpp"

namespace cermet {
namespace {

/// The case's problem with dimension 0 of operands that are as long as operand 0 as the symbol T of up to `spare` more;
/// nothing where it must be known.
std::optional<Problem> with_symbol(const OpDefinition& op, const Case& recipe, std::int64_t spare,
                                   const Target* target) {
  if (!recipe.inputs[0] || recipe.inputs[0]->constant || recipe.inputs[0]->type.rank() == 0) return {};
  const Dim size = recipe.inputs[0]->type.dims[0];
  std::vector<std::optional<TensorType>> types;
  std::uint64_t constants = 0;
  for (std::size_t i = 0; i < recipe.inputs.size(); ++i) {
    types.push_back(recipe.inputs[i] ? std::optional(recipe.inputs[i]->type) : std::nullopt);
    if (!types[i]) continue;
    if (recipe.inputs[i]->constant) constants |= std::uint64_t{1} << i;
    else if (types[i]->rank() > 0 && types[i]->dims[0] == size) types[i]->dims[0] = Dim::symbol("T");
  }
  try {
    Problem problem = make_problem(op, std::move(types), recipe.attributes);
    problem.constant_inputs = constants;
    problem.maximum.set(Symbol("T"), size.constant() + spare);
    problem.target = target;
    return problem;
  } catch (const Error& error) {
    EXPECT_NE(error.status(), Status::internal) << op.name << " case " << recipe.name << ": " << error.what();
    return {};
  }
}

class CudaSymbolic : public testing::TestWithParam<const OpDefinition*> {};

TEST_P(CudaSymbolic, BindsWithoutAGpu) {
  const OpDefinition& op = *GetParam();
  for (const int compute_capability : {80, 90}) {
    const std::unique_ptr<Device> device = make_null_device(compute_capability);
    for (const Case& recipe : op.cases())
      for (const std::int64_t spare : {0, 5, 4096}) {
        const std::optional<Problem> problem = with_symbol(op, recipe, spare, device->target());
        if (!problem) continue;
        for (const Kernel* kernel : cuda::kernels_of(op.kind)) {
          if (kernel->declines(*problem)) continue;
          SCOPED_TRACE(
              fmt::format("{} case {}, kernel {}, T up to {} more", op.name, recipe.name, kernel->name, spare));
          EXPECT_TRUE(kernel->bind(*problem));
          EXPECT_GE(kernel->workspace(*problem, 1), 0);
          EXPECT_FALSE(kernel->programs(*problem).empty());
        }
      }
  }
}

// Heads are compiled into the program: one made for the most that there may be would read past fewer.
TEST(CudaSymbolicHeads, AreDeclined) {
  const std::unique_ptr<Device> device = make_null_device(90);
  const TensorType heads{DType::f32, {Dim::symbol("T"), 16}}, table{DType::f32, {50, 8}}, position{DType::i32, {}};
  Problem problem = make_problem(definition(OpKind::rope), {heads, std::nullopt, table, table, position}, {});
  problem.maximum.set(Symbol("T"), 8);
  problem.target = device->target();
  for (const Kernel* kernel : cuda::kernels_of(OpKind::rope))
    EXPECT_EQ(kernel->declines(problem), "the number of heads is not known") << kernel->name;
}

TEST_P(CudaSymbolic, ComputesAsForTheNumber) {
  TestDevice& gpu = TestDevice::get();
  if (!gpu.device) GTEST_SKIP() << gpu.reason;
  const OpDefinition& op = *GetParam();
  for (const Case& recipe : op.cases()) {
    const std::optional<Problem> problem = with_symbol(op, recipe, 5, gpu.device->target());
    if (!problem) continue;
    CaseData data = make_case_data(op, recipe);
    data.problem.target = gpu.device->target();
    const Expected expected = run_reference(data);
    for (const Kernel* kernel : cuda::kernels_of(op.kind)) {
      if (kernel->declines(*problem)) continue;
      EXPECT_EQ(run_on_device(data, expected, *kernel, 0, gpu.queue(), gpu.pool, nullptr, &*problem), "")
          << op.name << " case " << recipe.name << ", kernel " << kernel->name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Operators, CudaSymbolic, testing::ValuesIn(every_operator()),
                         [](const auto& test) { return std::string(test.param->name); });

}  // namespace
}  // namespace cermet
