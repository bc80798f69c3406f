// Sums, products and quotients bracketed another way, so that constants meet and are merged, or that fewer operators
// are left.
#include "graph/rewrite/replace.hpp"

namespace cermet {
namespace {

using enum RoundingClass;

constexpr AlgebraRow associative_rows[] = {
    // Constants of one element.
    {"add-numbers", fast, "add(add(x, c1#), c2#) -> add(x, [c1 + c2])", "number"},
    {"mul-numbers", fast, "mul(mul(x, c1#), c2#) -> mul(x, [c1 * c2])", "number"},
    {"max-numbers", strict, "max(max(x, c1#), c2#) -> max(x, [max(c1, c2)])", "number; not_nan c1; not_nan c2"},
    {"min-numbers", strict, "min(min(x, c1#), c2#) -> min(x, [min(c1, c2)])", "number; not_nan c1; not_nan c2"},
    {"div-of-div-by-numbers", fast, "div(div(x, c1#), c2#) -> div(x, [c1 * c2])"},
    {"div-of-mul-by-numbers", fast, "div(mul(x, c1#), c2#) -> mul(x, [c1 / c2])", "c2 != 0"},
    {"mul-of-div-by-numbers", fast, "mul(div(x, c1#), c2#) -> mul(x, [c2 / c1])", "c1 != 0"},
    {"mul-of-number-over", fast, "mul(div(c1#, x), c2#) -> div([c1 * c2], x)"},
    {"div-of-number-over", fast, "div(div(c1#, x), c2#) -> div([c1 / c2], x)", "c2 != 0"},
    {"number-over-mul", fast, "div(c1#, mul(x, c2#)) -> div([c1 / c2], x)", "c2 != 0"},
    {"number-over-div", fast, "div(c1#, div(x, c2#)) -> div([c1 * c2], x)", "c2 != 0"},
    {"number-over-number-over", fast, "div(c1#, div(c2#, x)) -> mul(x, [c1 / c2])", "c2 != 0"},
    {"sub-number-of-add", fast, "sub(add(x, c1#), c2#) -> add(x, [c1 - c2])", "number"},
    {"add-number-of-sub", fast, "add(sub(x, c1#), c2#) -> add(x, [c2 - c1])", "number"},
    {"add-number-to-difference", fast, "add(sub(c1#, x), c2#) -> sub([c1 + c2], x)", "number"},
    {"sub-number-of-difference", fast, "sub(sub(c1#, x), c2#) -> sub([c1 - c2], x)", "number"},
    {"number-less-sum", fast, "sub(c1#, add(x, c2#)) -> sub([c1 - c2], x)", "number"},
    {"number-less-difference", fast, "sub(c1#, sub(c2#, x)) -> add(x, [c1 - c2])", "number"},
    {"add-of-sums", fast, "add(add(x, c1#), add(z, c2#)) -> add(add(x, z), [c1 + c2])", "number"},
    {"mul-of-products", fast, "mul(mul(x, c1#), mul(z, c2#)) -> mul(mul(x, z), [c1 * c2])", "number"},
    {"sub-of-sums", fast, "sub(add(x, c1#), add(z, c2#)) -> add(sub(x, z), [c1 - c2])", "number"},
    {"div-of-products", fast, "div(mul(x, c1#), mul(z, c2#)) -> mul(div(x, z), [c1 / c2])", "c2 != 0"},
    {"shift-left-twice", exact, "shift_left(shift_left(x, c1#), c2#) -> shift_left(x, [c1 + c2])", "integer"},
    {"shift-right-twice", exact, "shift_right(shift_right(x, c1#), c2#) -> shift_right(x, [c1 + c2])", "integer"},
    // Constants of any shape: the sum or product of the two is computed while weights load.
    {"add-constants", fast, "add(add(x, w1@), w2@) -> add(x, add(w1, w2))", "number"},
    {"mul-constants", fast, "mul(mul(x, w1@), w2@) -> mul(x, mul(w1, w2))", "number"},
    {"max-constants", strict, "max(max(x, w1@), w2@) -> max(x, max(w1, w2))", "number"},
    {"min-constants", strict, "min(min(x, w1@), w2@) -> min(x, min(w1, w2))", "number"},
    {"sub-constants", fast, "sub(sub(x, w1@), w2@) -> sub(x, add(w1, w2))", "number"},
    {"sub-constant-of-add", fast, "sub(add(x, w1@), w2@) -> add(x, sub(w1, w2))", "number"},
    {"and-constants", exact, "bitwise_and(bitwise_and(x, w1@), w2@) -> bitwise_and(x, bitwise_and(w1, w2))", "integer"},
    {"or-constants", exact, "bitwise_or(bitwise_or(x, w1@), w2@) -> bitwise_or(x, bitwise_or(w1, w2))", "integer"},
    {"xor-constants", exact, "bitwise_xor(bitwise_xor(x, w1@), w2@) -> bitwise_xor(x, bitwise_xor(w1, w2))", "integer"},
    // Quotients.
    {"div-of-div", fast, "div(div(a, b), c) -> div(a, mul(b, c))"},
    {"div-by-div", fast, "div(a, div(b, c)) -> div(mul(a, c), b)"},
    {"mul-of-quotients", fast, "mul(div(a, b), div(c, d)) -> div(mul(a, c), mul(b, d))"},
    {"div-of-quotients", fast, "div(div(a, b), div(c, d)) -> div(mul(a, d), mul(b, c))"},
    {"mul-by-reciprocal", fast, "mul(a, reciprocal(b)) -> div(a, b)"},
    {"div-by-reciprocal", fast, "div(a, reciprocal(b)) -> mul(a, b)"},
    {"reciprocal-of-div", fast, "reciprocal(div(a, b)) -> div(b, a)"},
    {"mul-of-reciprocals", fast, "mul(reciprocal(a), reciprocal(b)) -> reciprocal(mul(a, b))"},
    {"reciprocals-that-share", fast, "mul(reciprocal(a), reciprocal(mul(a, b))) -> reciprocal(mul(square(a), b))"},
    {"div-out-of-mul", fast, "div(mul(a, b), b) -> a", "b > 0; finite b"},
    {"mul-out-of-div", fast, "mul(div(a, b), b) -> a", "b > 0; finite b"},
    {"div-common-factor", fast, "div(mul(a, c), mul(b, c)) -> div(a, b)", "c > 0; finite c"},
    // Squares and roots.
    {"mul-square-roots", fast, "mul(mul(a, sqrt(b)), mul(sqrt(b), c)) -> mul(mul(a, b), c)", "b >= 0"},
    {"mul-squares", fast, "mul(square(a), square(b)) -> square(mul(a, b))"},
    {"div-squares", fast, "div(square(a), square(b)) -> square(div(a, b))"},
    {"square-shared-sum", fast,
     "mul(mul(a, reduce_sum(b) {keepdims = true}), mul(reduce_sum(b) {keepdims = true}, c)) -> "
     "mul(mul(a, square(reduce_sum(b))), c)"},
    {"square-shared-factor", fast, "mul(mul(a, b), mul(a, c)) -> mul(square(a), mul(b, c))"},
};

}  // namespace

std::span<const AlgebraRow> associative_rules() { return associative_rows; }

}  // namespace cermet
