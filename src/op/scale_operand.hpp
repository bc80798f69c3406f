// Operands of quantizing operators that have fewer elements than what they scale or shift.
#pragma once

#include <optional>

#include "op/schema/infer.hpp"

namespace cermet {

/// The operand broadcasts to dimensions of operand 0, as in NumPy.
void expect_broadcasts(const Problem& problem, std::size_t operand);
/// Reference: the element of a view that broadcasts to `shape` beside dense index `i` of it.
std::int64_t broadcast_index(const TensorView& view, const Shape& shape, std::int64_t i);
/// The operand is one number (rank 0, or one element) or has the last dimension of operand 0.
void expect_scalar_or_channel(const Problem& problem, std::size_t operand);
/// Reference: element i of an operand that is one number or has a number per element; nothing where it is not given.
std::optional<float> scalar_or_channel(const ReferenceCall& call, std::size_t operand, std::int64_t i);

}  // namespace cermet
