// One engine for every pooling operator: rows of x are combined to one, and that one along itself where windows lie
// along the last axis.
#pragma once

#include "kernel/kernel.hpp"
#include "op/pool_window.hpp"

namespace cermet::cpu {

enum class PoolKind { max, average, norm };

struct Pooling {
  PoolKind kind;
  PoolWindow window;
  bool count_padding = false;
  int power = 1;
};

/// Bytes of scratch that `threads` need.
std::int64_t pool_workspace(const Problem& p, int threads);
/// y of the first operand; elements of f32, bf16, f16 and, for the maximum, i8 and u8.
void pool(const LaunchArgs& args, const Pooling& pooling);

}  // namespace cermet::cpu
