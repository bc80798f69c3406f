// Products of float32 rows with constant weights by AMX tiles, each operand as three bf16 (parts.hpp): linear, and convolutions of single pixels.
#pragma once

#include "kernel/cpu/gemm/binding.hpp"

namespace cermet::cpu {

/// y = x w' and what its region computes around it. The weight has float32 panels of its first two dimensions; others are 1.
void linear_parts(const LaunchArgs& args, const ProductBinding& binding);
/// What a product must have at least.
struct PartsSizes {
  std::int64_t rows, columns = 1, steps = 1;
};
/// Why a product is not taken whatever its region has around it.
Decline linear_parts_decline(const Problem& problem, const PartsSizes& least);
std::int64_t linear_parts_workspace(const Region& region, int threads);
double linear_parts_cost(const Region& region, const DeviceLimits& limits);

}  // namespace cermet::cpu
