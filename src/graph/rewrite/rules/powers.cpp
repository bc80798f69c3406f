// Exponentials, logarithms, roots and powers.
#include "graph/rewrite/replace.hpp"

namespace cermet {
namespace {

using enum RoundingClass;

constexpr AlgebraRow power_rows[] = {
    // Exponentials and logarithms.
    {"exp-of-log", fast, "exp(log(x)) -> x", "x >= 0"},
    {"log-of-exp", fast, "log(exp(x)) -> x"},
    {"mul-exps", fast, "mul(exp(a), exp(b)) -> exp(add(a, b))"},
    {"div-exps", fast, "div(exp(a), exp(b)) -> exp(sub(a, b))"},
    {"reciprocal-of-exp", fast, "reciprocal(exp(x)) -> exp(neg(x))"},
    {"sqrt-of-exp", fast, "sqrt(exp(x)) -> exp(mul(x, 0.5))"},
    {"pow-of-exp", fast, "pow(exp(x), c#) -> exp(mul(x, c))", "finite c"},
    {"add-logs", fast, "add(log(a), log(b)) -> log(mul(a, b))", "a >= 0; b >= 0"},
    {"sub-logs", fast, "sub(log(a), log(b)) -> log(div(a, b))", "a >= 0; b > 0"},
    {"log-of-reciprocal", fast, "log(reciprocal(x)) -> neg(log(x))", "x >= 0"},
    {"log-of-sqrt", fast, "log(sqrt(x)) -> mul(log(x), 0.5)"},
    {"log-of-rsqrt", fast, "log(rsqrt(x)) -> mul(log(x), -0.5)", "x >= 0"},
    {"log-of-pow", fast, "log(pow(x, c#)) -> mul(log(x), c)", "x > 0; finite c"},
    {"log-of-multiple-of-exp", fast, "log(mul(exp(x), c#)) -> add(x, [log(c)])", "c > 0; finite c"},
    {"exp-of-multiple-of-log", fast, "exp(mul(log(x), c#)) -> pow(x, c)", "x > 0; finite c"},
    {"exp-of-sum-with-log", fast, "exp(add(a, log(b))) -> mul(exp(a), b)", "b >= 0"},
    {"exp-of-difference-with-log", fast, "exp(sub(a, log(b))) -> div(exp(a), b)", "b >= 0"},
    {"prod-of-exps", fast, "reduce_prod(exp(x)) -> exp(reduce_sum(x))"},
    {"sum-of-exps-shifted", fast,
     "add(log(reduce_sum(exp(sub(x, m))) {keepdims = true}), m) -> log(reduce_sum(exp(x)))", "x >= -64; x <= 64"},
    // Roots.
    {"square-of-sqrt", fast, "square(sqrt(x)) -> x", "x >= 0"},
    {"sqrt-of-square", fast, "sqrt(square(x)) -> abs(x)"},
    {"mul-sqrts", fast, "mul(sqrt(a), sqrt(b)) -> sqrt(mul(a, b))", "a >= 0; b >= 0"},
    {"div-sqrts", fast, "div(sqrt(a), sqrt(b)) -> sqrt(div(a, b))", "a >= 0; b > 0"},
    {"mul-rsqrts", fast, "mul(rsqrt(a), rsqrt(b)) -> rsqrt(mul(a, b))", "a > 0; b > 0"},
    {"reciprocal-of-sqrt", strict, "reciprocal(sqrt(x)) -> rsqrt(x)"},
    {"sqrt-of-reciprocal", fast, "sqrt(reciprocal(x)) -> rsqrt(x)", "x > 0"},
    {"reciprocal-of-rsqrt", fast, "reciprocal(rsqrt(x)) -> sqrt(x)", "x >= 0"},
    {"square-of-rsqrt", fast, "square(rsqrt(x)) -> reciprocal(x)", "x > 0"},
    {"square-of-reciprocal-sqrt", fast, "square(reciprocal(sqrt(x))) -> reciprocal(x)", "x > 0"},
    {"mul-rsqrt-of-itself", fast, "mul(x, rsqrt(x)) -> sqrt(x)", "x > 0; finite x"},
    {"div-by-sqrt-of-itself", fast, "div(x, sqrt(x)) -> sqrt(x)", "x > 0; finite x"},
    {"sqrt-over-itself", fast, "div(sqrt(x), x) -> rsqrt(x)", "x > 0; finite x"},
    {"div-by-sqrt", fast, "div(a, sqrt(b)) -> mul(a, rsqrt(b))"},
    {"div-by-rsqrt", fast, "div(a, rsqrt(b)) -> mul(a, sqrt(b))", "b > 0"},
    {"one-over-sqrt", strict, "div(1, sqrt(x)) -> rsqrt(x)"},
    // Powers.
    {"pow-two", strict, "pow(x, 2) -> square(x)"},
    {"pow-two-of-integers", exact, "pow(x, 2) -> square(x)", "integer"},
    {"pow-half", fast, "pow(x, 0.5) -> sqrt(x)"},
    {"pow-minus-half", fast, "pow(x, -0.5) -> rsqrt(x)"},
    {"pow-minus-one", strict, "pow(x, -1) -> reciprocal(x)"},
    {"pow-minus-two", fast, "pow(x, -2) -> reciprocal(square(x))"},
    {"pow-of-pow", fast, "pow(pow(x, c1#), c2#) -> pow(x, [c1 * c2])", "x > 0; finite c1; finite c2"},
    {"pow-of-sqrt", fast, "pow(sqrt(x), c#) -> pow(x, [c / 2])", "x > 0; finite c"},
    {"pow-of-square", fast, "pow(square(x), c#) -> pow(x, [c * 2])", "x > 0; finite c"},
    {"pow-of-reciprocal", fast, "pow(reciprocal(x), c#) -> pow(x, [-c])", "x > 0; finite c"},
    {"sqrt-of-pow", fast, "sqrt(pow(x, c#)) -> pow(x, [c / 2])", "x > 0; finite c"},
    {"mul-pows-of-one-base", fast, "mul(pow(x, c1#), pow(x, c2#)) -> pow(x, [c1 + c2])", "x > 0; finite c1; finite c2"},
    {"div-pows-of-one-base", fast, "div(pow(x, c1#), pow(x, c2#)) -> pow(x, [c1 - c2])", "x > 0; finite c1; finite c2"},
    {"mul-pow-by-base", fast, "mul(pow(x, c#), x) -> pow(x, [c + 1])", "x > 0; finite c"},
    {"mul-pows-of-one-exponent", fast, "mul(pow(a, c), pow(b, c)) -> pow(mul(a, b), c)", "a > 0; b > 0"},
    {"div-pows-of-one-exponent", fast, "div(pow(a, c), pow(b, c)) -> pow(div(a, b), c)", "a > 0; b > 0"},
    // Trigonometry and sigmoids.
    {"tan-of-quotient", fast, "div(sin(x), cos(x)) -> tan(x)"},
    {"tanh-of-quotient", fast, "div(sinh(x), cosh(x)) -> tanh(x)"},
    {"double-sine", fast, "mul(mul(sin(x), cos(x)), 2) -> sin(mul(x, 2))"},
    {"sigmoid-of-half-tanh", fast, "add(mul(tanh(mul(x, 0.5)), 0.5), 0.5) -> sigmoid(x)"},
    {"tanh-of-double-sigmoid", fast, "sub(mul(sigmoid(mul(x, 2)), 2), 1) -> tanh(x)"},
    {"one-less-sigmoid", fast, "sub(1, sigmoid(x)) -> sigmoid(neg(x))"},
};

}  // namespace

std::span<const AlgebraRow> power_rules() { return power_rows; }

}  // namespace cermet
