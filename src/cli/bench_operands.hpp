// Operands for measuring an operator: random values, and legal ones where values are indices.
#pragma once

#include <optional>
#include <string_view>

#include "base/buffer.hpp"
#include "op/operator.hpp"

namespace cermet::cli {

/// How a paged cache lies in memory: pages in the order of the tokens, or anywhere; with `uneven`, anywhere and sequences of different lengths, from
/// few tokens to all that their pages hold.
enum class Paging : std::uint8_t { contiguous, scattered, uneven };
/// Throws Error for another word.
Paging parse_paging(std::string_view text);

struct OperandValues {
  std::uint64_t seed = 0;
  Paging paging = Paging::scattered;
};

/// What operand i of a problem with constant dimensions is filled with: all of its elements where they are indices, otherwise so many that they may be
/// repeated. One-dimensional. The same seed gives the same bytes.
OwnedTensor make_bench_pattern(const Problem& problem, std::size_t i, const OperandValues& values);
/// Memory for the operand, filled with its pattern.
OwnedTensor make_bench_operand(const Problem& problem, std::size_t i, const OperandValues& values);

/// cost_of with the lengths that such operands have.
Cost bench_cost(const Problem& problem, const OperandValues& values);

}  // namespace cermet::cli
