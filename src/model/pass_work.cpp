#include "model/pass_work.hpp"

#include <algorithm>

#include "kernel/cuda/gemv/compact.hpp"
#include "op/schema/operator.hpp"
#include "select/bound_op.hpp"

namespace cermet {

double decode_weight_bytes(const Engine& engine, std::int64_t batch) {
  const ModelConfig& config = engine.config();
  double bytes = 0;
  for (const StepInfo& step : engine.steps(false)) {
    const Region& region = step.region;
    const Problem& problem = region.problem();
    if (problem.op->kind == OpKind::embedding) continue;
    const double share = problem.op->kind == OpKind::grouped_linear
                             ? static_cast<double>(std::min(config.experts, batch * config.experts_per_token)) /
                                   static_cast<double>(config.experts)
                             : 1;
    for (std::size_t i = 0; i < region.operands.size(); ++i) {
      if (!region.has(i) || !region.is_constant(i)) continue;
      const TensorType type = region.operand_type(i);
      bytes += step.layouts[i] == &cuda::compact_rows ? static_cast<double>(packed_bytes(cuda::compact_rows, type))
                                                      : share * bytes_of(type, region.maximum());
    }
  }
  return bytes / static_cast<double>(batch);
}

PrefillOperations prefill_operations(const Engine& engine, std::int64_t tokens) {
  PrefillOperations operations;
  for (const StepInfo& step : engine.steps(true)) {
    if (definition(step.region.problem()).category != "Linear algebra") continue;
    Problem problem = step.region.problem();
    problem.maximum.set(Symbol("T"), tokens);
    problem.maximum.set(Symbol("R"), 1);
    const double of_step = cost_of(problem).operations;
    operations.all += of_step;
    if (problem.input(0).dtype == DType::i8) operations.int8 += of_step;
  }
  return operations;
}

}  // namespace cermet
