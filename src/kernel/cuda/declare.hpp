// What launches that touch whole operands say about it.
#pragma once

#include <array>

#include "kernel/cuda/task.hpp"
#include "kernel/kernel.hpp"

namespace cermet::cuda {

/// How a launch differs from one that reads its operands once earlier launches have ended.
struct OperandUse {
  std::array<const TensorView*, 2> early = {};  ///< constant weights that are fetched before; see ByteRange::early
  const TensorView* unread = nullptr;
  ByteRange also_reads = {};  ///< of the workspace, or memory that is no operand
};

/// Says that the last launch touches all operands and results, and nothing else: for kernels of several launches, those
/// that fetch weights early, and those that are part of others. `early` and `unread` are among `args.inputs`.
void declare_operands(const LaunchArgs& args, const OperandUse& use = {});

}  // namespace cermet::cuda
