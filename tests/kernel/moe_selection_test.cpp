// Kernels that choose others for their parts pass over those that selection passes over.
#include <gtest/gtest.h>

#include "kernel/cpu/gemm/panels.hpp"
#include "op/mixture.hpp"
#include "op/schema/case_data.hpp"
#include "op/schema/operator.hpp"
#include "select/select.hpp"

namespace cermet {
namespace {

/// Exits with the text of what `look` finds for a mixture of bf16 while CERMET_DISABLE_KERNELS is `disabled`; a fresh
/// process, because it is read once.
template <class Look>
[[noreturn]] void look_without(const char* disabled, Look&& look) {
  setenv("CERMET_DISABLE_KERNELS", disabled, 1);
  const OpDefinition& op = *find_operator("moe");
  for (const Case& test_case : op.cases())
    if (test_case.name == "bf16_bf16") std::fputs(look(make_case_data(op, test_case).problem).c_str(), stderr);
  std::exit(0);
}

std::string layout_of_experts(const Problem& problem) {
  const WeightLayout* const layout = select_kernel(problem).kernel->weight_layout(problem, mixture_gate_up);
  return fmt::format("layout: {}", layout ? layout->name : "none");
}

std::string reason_to_decline(const Problem& problem) {
  const Selection selection = explain_selection(problem);
  return selection.choice.kernel ? "taken" : *selection.candidates.front().decline;
}

TEST(MoeSelectionDeathTest, PartsPassOverDisabledKernels) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(look_without("", layout_of_experts), testing::ExitedWithCode(0), "layout: panels.bf16");
  EXPECT_EXIT(
      look_without("gemm.grouped_linear.amx,gemm.grouped_linear.bf16,gemm.grouped_linear.packed", layout_of_experts),
      testing::ExitedWithCode(0), "layout: none");
  EXPECT_EXIT(look_without("moe.topk_gating", reason_to_decline), testing::ExitedWithCode(0),
              "no kernel takes its part topk_gating");
}

}  // namespace
}  // namespace cermet
