// Operands for measuring an operator: random values, and legal ones where values are indices.
#pragma once

#include "base/buffer.hpp"
#include "op/operator.hpp"

namespace cermet::cli {

/// Memory for operand i of a problem with constant dimensions, filled. The same seed gives the same bytes.
OwnedTensor make_bench_operand(const Problem& problem, std::size_t i, std::uint64_t seed);

}  // namespace cermet::cli
