// Checks that shape inference shares. Each throws Error(invalid_argument) naming operator, operand, what was expected
// and what was found.
#pragma once

#include "op/schema/problem.hpp"

namespace cermet {

/// The operand has exactly `rank` dimensions.
void expect_rank(const Problem& problem, std::size_t operand, int rank);
/// The operand has at least `rank` dimensions.
void expect_min_rank(const Problem& problem, std::size_t operand, int rank);
/// Dimension `axis` (negative counts from the end) equals `dim`; `meaning` names it: "K of x".
void expect_dim(const Problem& problem, std::size_t operand, int axis, const Dim& dim, std::string_view meaning);
/// The operand's dimensions are exactly these; `meaning` says why: "those of x".
void expect_dims(const Problem& problem, std::size_t operand, const Dims& dims, std::string_view meaning);
/// The operand's element type equals `dtype`.
void expect_dtype(const Problem& problem, std::size_t operand, DType dtype, std::string_view meaning);
/// Dimension of an operand; negative axes count from the end.
Dim dim_of(const Problem& problem, std::size_t operand, int axis);
/// An attribute that names an element type; the empty string means `fallback`. Throws unless `allowed` contains it.
DType dtype_attribute(const Problem& problem, std::string_view name, DType fallback, DTypeSet allowed);
/// Throws naming the attribute: expected `expected`, found its value.
[[noreturn]] void bad_attribute(const Problem& problem, std::string_view name, std::string_view expected);
/// Throws naming the operand: expected `expected`, found `found`.
[[noreturn]] void bad_operand(const Problem& problem, std::size_t operand, std::string_view expected,
                              std::string_view found);
/// Dimensions of NumPy-style broadcasting; throws naming the second operand where they do not match.
Dims broadcast_dims(const Problem& problem, std::size_t first, std::size_t second);
/// The same of dimensions and an operand.
Dims broadcast_dims(const Problem& problem, const Dims& dims, std::size_t operand);

}  // namespace cermet
