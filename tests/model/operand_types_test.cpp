// What --dtype rounds on the CPU: operands of products to bf16, beside bf16 weights, in passes of more than one token.
#include <gtest/gtest.h>

#include <filesystem>

#include "model/engine.hpp"

namespace cermet {
namespace {

/// Types of the left operands of a checkpoint's linears in passes of many tokens (`prefill`) or of one.
DTypeSet operand_types(const char* model, DType dtype, bool prefill) {
  EngineOptions options;
  options.dtype = dtype;
  options.max_context = 64;
  const Engine engine =
      Engine::load(std::filesystem::path(CERMET_SOURCE_DIR) / "tests/model/data/reference" / model, options);
  DTypeSet types;
  for (const StepInfo& step : engine.steps(prefill))
    if (step.region.problem().op->kind == OpKind::linear)
      types = types | DTypeSet{step.region.problem().input(0).dtype};
  return types;
}

TEST(OperandTypes, AreRoundedOnTheCpuWhereAnInstructionMultipliesThem) {
  EXPECT_EQ(operand_types("mistral-window-bf16", DType::bf16, true).to_string(), "bf16");
  EXPECT_EQ(operand_types("mistral-window-bf16", DType::bf16, false).to_string(), "f32");
  EXPECT_EQ(operand_types("mistral-window-bf16", DType::f16, true).to_string(), "f32");
  EXPECT_EQ(operand_types("llama-gqa-f32", DType::bf16, true).to_string(), "f32");
}

}  // namespace
}  // namespace cermet
