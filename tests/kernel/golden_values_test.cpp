// CPU kernels against the oracle of tests/support/golden_values.hpp, on every instruction set: what they compute does
// not rest on our references.
#include "tests/support/golden_values.hpp"

#include "op/schema/operator.hpp"

#include <set>

#include "kernel/cpu/isa.hpp"
#include "kernel/cpu/kernels.hpp"
#include "select/bound_op.hpp"

namespace cermet {
namespace {

/// A kernel's results for a case; results that update an operand begin as a copy of it.
std::vector<OwnedTensor> run(const GoldenCase& golden, const Problem& problem, const Kernel& kernel, ThreadPool& pool) {
  BoundOp op(problem, kernel, pool);
  for (std::size_t i = 0; i < golden.data.inputs.size(); ++i)
    if (problem.is_constant(i)) op.prepack(i, golden.data.inputs[i]);
  std::vector<OwnedTensor> results;
  std::vector<TensorView> inputs = golden.data.inputs, outputs;
  for (std::size_t o = 0; o < problem.outputs.size(); ++o) {
    results.emplace_back(problem.outputs[o].dtype, bind(problem.outputs[o].dims, {}));
    outputs.push_back(results.back().view);
    const int alias = o < definition(problem).aliases.size() ? definition(problem).aliases[o] : -1;
    if (alias < 0) continue;
    TensorView& shared = inputs[static_cast<std::size_t>(alias)];
    for (std::int64_t e = 0; e < shared.elements(); ++e) copy_element(shared, e, outputs[o], e);
    shared = outputs[o];
  }
  op.run(inputs, outputs);
  return results;
}

/// Every kernel that takes the case, with operands packed beforehand and without.
void expect_kernels_agree(const GoldenCase& golden, std::string_view isa, ThreadPool& pool) {
  int taken = 0;
  for (const std::uint64_t constants : std::set{golden.data.problem.constant_inputs, std::uint64_t{0}}) {
    Problem problem = golden.data.problem;
    problem.constant_inputs = constants;
    for (const Kernel* kernel : cpu::kernels_of(problem.op->kind)) {
      if (kernel->declines(problem)) continue;
      ++taken;
      const std::vector<OwnedTensor> results = run(golden, problem, *kernel, pool);
      std::vector<TensorView> views;
      for (const OwnedTensor& result : results) views.push_back(result.view);
      EXPECT_EQ(compare_with_golden(golden, views, 1), "")
          << golden.place << ", kernel " << kernel->name << ", " << isa;
    }
  }
  EXPECT_GT(taken, 0) << golden.place << ": every kernel declines on " << isa;
}

TEST(GoldenValues, KernelsAgree) {
  ThreadPool pool(1);  // conformance has the others
  const std::vector<GoldenCase> cases = golden_cases();
  for (const cpu::Isa isa : cpu::supported_isas()) {
    cpu::force_isa(isa);
    for (const GoldenCase& golden : cases) expect_kernels_agree(golden, cpu::name_of(isa), pool);
  }
  cpu::force_isa(cpu::supported_isas().back());
}

}  // namespace
}  // namespace cermet
