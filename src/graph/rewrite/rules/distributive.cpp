// One factor in place of several: a * c + a * b is a * (b + c).
#include "graph/rewrite/replace.hpp"

namespace cermet {
namespace {

using enum RoundingClass;

constexpr AlgebraRow distributive_rows[] = {
    {"add-products", fast, "add(mul(a, c), mul(a, b)) -> mul(a, add(b, c))", "number"},
    {"sub-products", fast, "sub(mul(a, b), mul(a, c)) -> mul(a, sub(b, c))", "number"},
    {"add-product-to-factor", fast, "add(a, mul(a, b)) -> mul(a, add(b, 1))", "number"},
    {"sub-factor-of-product", fast, "sub(mul(a, b), a) -> mul(a, sub(b, 1))", "number"},
    {"sub-product-of-factor", fast, "sub(a, mul(a, b)) -> mul(a, sub(1, b))", "number"},
    {"add-product-to-square", fast, "add(square(a), mul(a, b)) -> mul(a, add(a, b))", "number"},
    {"sub-product-of-square", fast, "sub(square(a), mul(a, b)) -> mul(a, sub(a, b))", "number"},
    {"sub-square-of-product", fast, "sub(mul(a, b), square(a)) -> mul(a, sub(b, a))", "number"},
    {"sub-product-of-squared-sum", fast,
     "sub(square(add(a, b)), mul(add(a, b), c)) -> mul(add(a, b), sub(add(a, b), c))", "number"},
    {"add-three-products", fast, "add(add(mul(a, b), mul(a, c)), mul(a, d)) -> mul(a, add(add(b, c), d))", "number"},
    {"add-products-around", fast, "add(add(x, mul(a, b)), mul(a, c)) -> add(x, mul(a, add(b, c)))", "number"},
    // Multiples.
    {"add-to-itself", exact, "add(x, x) -> mul(x, 2)", "number"},
    {"add-multiples", fast, "add(mul(x, c1#), mul(x, c2#)) -> mul(x, [c1 + c2])", "number"},
    {"sub-multiples", fast, "sub(mul(x, c1#), mul(x, c2#)) -> mul(x, [c1 - c2])", "number"},
    {"add-multiple", fast, "add(mul(x, c#), x) -> mul(x, [c + 1])", "number"},
    {"sub-from-multiple", fast, "sub(mul(x, c#), x) -> mul(x, [c - 1])", "number"},
    {"sub-multiple", fast, "sub(x, mul(x, c#)) -> mul(x, [1 - c])", "number"},
    {"add-equal-multiples", fast, "add(mul(x, c#), mul(z, c#)) -> mul(add(x, z), c)", "number"},
    {"sub-equal-multiples", fast, "sub(mul(x, c#), mul(z, c#)) -> mul(sub(x, z), c)", "number"},
    // Quotients.
    {"add-quotients", fast, "add(div(a, c), div(b, c)) -> div(add(a, b), c)"},
    {"sub-quotients", fast, "sub(div(a, c), div(b, c)) -> div(sub(a, b), c)"},
    {"add-quotient-to-unit", fast, "add(div(a, b), div(b, b)) -> div(add(a, b), b)"},
    {"number-of-sum-of-products", fast, "mul(add(mul(x, c1#), c2#), c3#) -> add(mul(x, [c1 * c3]), [c2 * c3])",
     "number"},
    // Sums of everything.
    {"add-sums", fast, "add(reduce_sum(mul(a, b)), reduce_sum(mul(a, c))) -> reduce_sum(mul(a, add(b, c)))",
     "same b c"},
    {"sum-of-multiples", fast, "reduce_sum(mul(x, c#)) -> mul(reduce_sum(x), c)", "finite c"},
    {"mean-of-multiples", fast, "reduce_mean(mul(x, c#)) -> mul(reduce_mean(x), c)", "finite c"},
    {"sum-of-quotients", fast, "reduce_sum(div(x, c#)) -> div(reduce_sum(x), c)", "c != 0"},
    {"mean-of-quotients", fast, "reduce_mean(div(x, c#)) -> div(reduce_mean(x), c)", "c != 0"},
    {"sum-of-negatives", fast, "reduce_sum(neg(x)) -> neg(reduce_sum(x))"},
    {"mean-of-negatives", fast, "reduce_mean(neg(x)) -> neg(reduce_mean(x))"},
    {"mean-of-sums", fast, "reduce_mean(add(x, c#)) -> add(reduce_mean(x), c)", "finite c"},
    {"mean-of-differences", fast, "reduce_mean(sub(x, c#)) -> sub(reduce_mean(x), c)", "finite c"},
    // Truth and bits.
    {"or-of-ands", exact, "logical_or(logical_and(a, b), logical_and(a, c)) -> logical_and(a, logical_or(b, c))",
     "any"},
    {"and-of-ors", exact, "logical_and(logical_or(a, b), logical_or(a, c)) -> logical_or(a, logical_and(b, c))", "any"},
    {"xor-of-ands", exact, "logical_xor(logical_and(a, b), logical_and(a, c)) -> logical_and(a, logical_xor(b, c))",
     "any"},
    {"bitwise-or-of-ands", exact,
     "bitwise_or(bitwise_and(a, b), bitwise_and(a, c)) -> bitwise_and(a, bitwise_or(b, c))", "integer"},
    {"bitwise-and-of-ors", exact, "bitwise_and(bitwise_or(a, b), bitwise_or(a, c)) -> bitwise_or(a, bitwise_and(b, c))",
     "integer"},
    {"bitwise-xor-of-ands", exact,
     "bitwise_xor(bitwise_and(a, b), bitwise_and(a, c)) -> bitwise_and(a, bitwise_xor(b, c))", "integer"},
    // Lattice: NaN in either is NaN on both sides.
    {"max-of-mins", strict, "max(min(a, b), min(a, c)) -> min(a, max(b, c))", "number"},
    {"min-of-maxs", strict, "min(max(a, b), max(a, c)) -> max(a, min(b, c))", "number"},
};

}  // namespace

std::span<const AlgebraRow> distributive_rules() { return distributive_rows; }

}  // namespace cermet
