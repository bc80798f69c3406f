// Operators that do nothing, or what a simpler one does.
#include "graph/rewrite/replace.hpp"

namespace cermet {
namespace {

using enum RoundingClass;

constexpr AlgebraRow identity_rows[] = {
    // Units and zeros.
    {"mul-one", exact, "mul(x, 1) -> x", "number"},
    {"div-one", exact, "div(x, 1) -> x", "number"},
    {"add-zero", fast, "add(x, 0) -> x", "number"},
    {"sub-zero", exact, "sub(x, 0) -> x", "number"},
    {"pow-one", exact, "pow(x, 1) -> x", "number"},
    {"zero-less", fast, "sub(0, x) -> neg(x)", "number"},
    {"mul-minus-one", exact, "mul(x, -1) -> neg(x)", "number"},
    {"div-minus-one", exact, "div(x, -1) -> neg(x)", "number"},
    {"one-over", exact, "div(1, x) -> reciprocal(x)"},
    {"div-power-of-two", exact, "div(x, c#) -> mul(x, [1 / c])", "power_of_two c"},
    {"div-number", fast, "div(x, c#) -> mul(x, [1 / c])", "c != 0; finite c"},
    {"sub-number", exact, "sub(x, c#) -> add(x, [-c])", "number; c != 0"},
    {"mul-itself", exact, "mul(x, x) -> square(x)", "number"},
    // Operators that undo each other.
    {"neg-neg", exact, "neg(neg(x)) -> x", "number"},
    {"reciprocal-reciprocal", fast, "reciprocal(reciprocal(x)) -> x"},
    {"not-not", exact, "logical_not(logical_not(x)) -> x", "any"},
    {"bitwise-not-not", exact, "bitwise_not(bitwise_not(x)) -> x", "integer"},
    {"add-then-sub", exact, "sub(add(x, z), z) -> x", "integer"},
    {"sub-then-add", exact, "add(sub(x, z), z) -> x", "integer"},
    {"xor-twice", exact, "bitwise_xor(bitwise_xor(x, z), z) -> x", "integer"},
    {"logical-xor-twice", exact, "logical_xor(logical_xor(x, z), z) -> x", "any"},
    // Doing it twice changes nothing.
    {"abs-abs", exact, "abs(abs(x)) -> abs(x)", "number"},
    {"relu-relu", exact, "relu(relu(x)) -> relu(x)", "number"},
    {"sign-sign", exact, "sign(sign(x)) -> sign(x)", "number"},
    {"floor-floor", exact, "floor(floor(x)) -> floor(x)"},
    {"floor-ceil", exact, "floor(ceil(x)) -> ceil(x)"},
    {"floor-round", exact, "floor(round(x)) -> round(x)"},
    {"ceil-ceil", exact, "ceil(ceil(x)) -> ceil(x)"},
    {"ceil-floor", exact, "ceil(floor(x)) -> floor(x)"},
    {"ceil-round", exact, "ceil(round(x)) -> round(x)"},
    {"round-round", exact, "round(round(x)) -> round(x)"},
    {"round-floor", exact, "round(floor(x)) -> floor(x)"},
    {"round-ceil", exact, "round(ceil(x)) -> ceil(x)"},
    {"where-same", exact, "where(c, x, x) -> x", "any"},
    {"where-not", exact, "where(logical_not(c), a, b) -> where(c, b, a)", "any"},
    {"where-where", exact, "where(c, where(c, a, b), d) -> where(c, a, d)", "any"},
    {"where-else-where", exact, "where(c, a, where(c, b, d)) -> where(c, a, d)", "any"},
    // Truth and bits.
    {"and-itself", exact, "logical_and(x, x) -> x", "any"},
    {"or-itself", exact, "logical_or(x, x) -> x", "any"},
    {"and-true", exact, "logical_and(x, 1) -> x", "any"},
    {"or-false", exact, "logical_or(x, 0) -> x", "any"},
    {"xor-false", exact, "logical_xor(x, 0) -> x", "any"},
    {"xor-true", exact, "logical_xor(x, 1) -> logical_not(x)", "any"},
    {"and-or", exact, "logical_and(logical_or(x, z), x) -> x", "any"},
    {"or-and", exact, "logical_or(logical_and(x, z), x) -> x", "any"},
    {"and-nots", exact, "logical_and(logical_not(a), logical_not(b)) -> logical_not(logical_or(a, b))", "any"},
    {"or-nots", exact, "logical_or(logical_not(a), logical_not(b)) -> logical_not(logical_and(a, b))", "any"},
    {"xor-nots", exact, "logical_xor(logical_not(a), logical_not(b)) -> logical_xor(a, b)", "any"},
    {"not-equal", exact, "logical_not(equal(a, b)) -> not_equal(a, b)", "any"},
    {"not-not-equal", exact, "logical_not(not_equal(a, b)) -> equal(a, b)", "any"},
    {"bitwise-and-itself", exact, "bitwise_and(x, x) -> x", "integer"},
    {"bitwise-or-itself", exact, "bitwise_or(x, x) -> x", "integer"},
    {"bitwise-or-zero", exact, "bitwise_or(x, 0) -> x", "integer"},
    {"bitwise-xor-zero", exact, "bitwise_xor(x, 0) -> x", "integer"},
    {"bitwise-and-or", exact, "bitwise_and(bitwise_or(x, z), x) -> x", "integer"},
    {"bitwise-or-and", exact, "bitwise_or(bitwise_and(x, z), x) -> x", "integer"},
    {"bitwise-and-nots", exact, "bitwise_and(bitwise_not(a), bitwise_not(b)) -> bitwise_not(bitwise_or(a, b))",
     "integer"},
    {"bitwise-or-nots", exact, "bitwise_or(bitwise_not(a), bitwise_not(b)) -> bitwise_not(bitwise_and(a, b))",
     "integer"},
    {"shift-left-zero", exact, "shift_left(x, 0) -> x", "integer"},
    {"shift-right-zero", exact, "shift_right(x, 0) -> x", "integer"},
};

}  // namespace

std::span<const AlgebraRow> identity_rules() { return identity_rows; }

}  // namespace cermet
