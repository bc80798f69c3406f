// Operators that change places: signs, roots and exponentials move out of products, sums and choices, where one is left
// of two.
#include "graph/rewrite/replace.hpp"

namespace cermet {
namespace {

using enum RoundingClass;

constexpr AlgebraRow commutative_rows[] = {
    // Signs.
    {"mul-negatives", exact, "mul(neg(a), neg(b)) -> mul(a, b)", "number"},
    {"div-negatives", exact, "div(neg(a), neg(b)) -> div(a, b)"},
    {"add-negatives", fast, "add(neg(a), neg(b)) -> neg(add(a, b))", "number"},
    {"add-negative", exact, "add(a, neg(b)) -> sub(a, b)", "number"},
    {"sub-negative", exact, "sub(a, neg(b)) -> add(a, b)", "number"},
    {"sub-from-negative", fast, "sub(neg(a), b) -> neg(add(a, b))", "number"},
    {"neg-difference", fast, "neg(sub(a, b)) -> sub(b, a)", "number"},
    {"neg-product", exact, "neg(mul(x, c#)) -> mul(x, [-c])", "number"},
    {"neg-quotient", exact, "neg(div(x, c#)) -> div(x, [-c])"},
    {"neg-of-number-over", exact, "neg(div(c#, x)) -> div([-c], x)"},
    {"mul-negative-by-number", exact, "mul(neg(x), c#) -> mul(x, [-c])", "number"},
    {"div-negative-by-number", exact, "div(neg(x), c#) -> div(x, [-c])"},
    {"number-over-negative", exact, "div(c#, neg(x)) -> div([-c], x)"},
    {"square-of-negative", exact, "square(neg(x)) -> square(x)", "number"},
    {"square-of-absolute", exact, "square(abs(x)) -> square(x)", "number"},
    {"abs-of-negative", exact, "abs(neg(x)) -> abs(x)"},
    {"cos-of-negative", exact, "cos(neg(x)) -> cos(x)"},
    {"cos-of-absolute", exact, "cos(abs(x)) -> cos(x)"},
    {"cosh-of-negative", exact, "cosh(neg(x)) -> cosh(x)"},
    {"cosh-of-absolute", exact, "cosh(abs(x)) -> cosh(x)"},
    {"mul-absolutes", exact, "mul(abs(a), abs(b)) -> abs(mul(a, b))"},
    {"div-absolutes", exact, "div(abs(a), abs(b)) -> abs(div(a, b))"},
    {"mul-distant-absolutes", fast, "mul(mul(abs(a), b), abs(c)) -> mul(abs(mul(a, c)), b)"},
    {"max-negatives", strict, "max(neg(a), neg(b)) -> neg(min(a, b))"},
    {"min-negatives", strict, "min(neg(a), neg(b)) -> neg(max(a, b))"},
    // Monotone maps out of the larger and the smaller.
    {"max-exp", strict, "max(exp(a), exp(b)) -> exp(max(a, b))"},
    {"min-exp", strict, "min(exp(a), exp(b)) -> exp(min(a, b))"},
    {"max-tanh", strict, "max(tanh(a), tanh(b)) -> tanh(max(a, b))"},
    {"min-tanh", strict, "min(tanh(a), tanh(b)) -> tanh(min(a, b))"},
    {"max-sigmoid", strict, "max(sigmoid(a), sigmoid(b)) -> sigmoid(max(a, b))"},
    {"min-sigmoid", strict, "min(sigmoid(a), sigmoid(b)) -> sigmoid(min(a, b))"},
    {"max-relu", strict, "max(relu(a), relu(b)) -> relu(max(a, b))", "number"},
    {"min-relu", strict, "min(relu(a), relu(b)) -> relu(min(a, b))", "number"},
    {"max-floor", strict, "max(floor(a), floor(b)) -> floor(max(a, b))"},
    {"min-floor", strict, "min(floor(a), floor(b)) -> floor(min(a, b))"},
    {"max-ceil", strict, "max(ceil(a), ceil(b)) -> ceil(max(a, b))"},
    {"min-ceil", strict, "min(ceil(a), ceil(b)) -> ceil(min(a, b))"},
    {"max-round", strict, "max(round(a), round(b)) -> round(max(a, b))"},
    {"min-round", strict, "min(round(a), round(b)) -> round(min(a, b))"},
    {"max-sums", fast, "max(add(a, c), add(b, c)) -> add(max(a, b), c)"},
    {"min-sums", fast, "min(add(a, c), add(b, c)) -> add(min(a, b), c)"},
    {"max-products", strict, "max(mul(a, c#), mul(b, c#)) -> mul(max(a, b), c)", "c > 0; finite c"},
    {"min-products", strict, "min(mul(a, c#), mul(b, c#)) -> mul(min(a, b), c)", "c > 0; finite c"},
    {"max-products-by-negative", strict, "max(mul(a, c#), mul(b, c#)) -> mul(min(a, b), c)", "c < 0; finite c"},
    {"min-products-by-negative", strict, "min(mul(a, c#), mul(b, c#)) -> mul(max(a, b), c)", "c < 0; finite c"},
    // Choices: where(c, f(a), f(b)) computes one f.
    {"choose-exp", exact, "where(c, exp(a), exp(b)) -> exp(where(c, a, b))"},
    {"choose-tanh", exact, "where(c, tanh(a), tanh(b)) -> tanh(where(c, a, b))"},
    {"choose-sigmoid", exact, "where(c, sigmoid(a), sigmoid(b)) -> sigmoid(where(c, a, b))"},
    {"choose-relu", exact, "where(c, relu(a), relu(b)) -> relu(where(c, a, b))", "number"},
    {"choose-neg", exact, "where(c, neg(a), neg(b)) -> neg(where(c, a, b))", "number"},
    {"choose-sqrt", exact, "where(c, sqrt(a), sqrt(b)) -> sqrt(where(c, a, b))"},
    {"choose-log", exact, "where(c, log(a), log(b)) -> log(where(c, a, b))"},
    {"choose-addend", exact, "where(c, add(x, a), add(x, b)) -> add(x, where(c, a, b))", "number"},
    {"choose-subtrahend", exact, "where(c, sub(x, a), sub(x, b)) -> sub(x, where(c, a, b))", "number"},
    {"choose-factor", exact, "where(c, mul(x, a), mul(x, b)) -> mul(x, where(c, a, b))", "number"},
    {"choose-divisor", exact, "where(c, div(x, a), div(x, b)) -> div(x, where(c, a, b))", "number"},
    {"choose-dividend", exact, "where(c, div(a, x), div(b, x)) -> div(where(c, a, b), x)", "number"},
    // Pieces that are joined.
    {"join-exp", exact, "concat(exp(a), exp(b)) -> exp(concat(a, b))"},
    {"join-relu", exact, "concat(relu(a), relu(b)) -> relu(concat(a, b))", "number"},
    {"join-sigmoid", exact, "concat(sigmoid(a), sigmoid(b)) -> sigmoid(concat(a, b))"},
    {"join-tanh", exact, "concat(tanh(a), tanh(b)) -> tanh(concat(a, b))"},
    {"join-silu", exact, "concat(silu(a), silu(b)) -> silu(concat(a, b))"},
    {"join-gelu", exact, "concat(gelu(a), gelu(b)) -> gelu(concat(a, b))"},
};

}  // namespace

std::span<const AlgebraRow> commutative_rules() { return commutative_rows; }

}  // namespace cermet
