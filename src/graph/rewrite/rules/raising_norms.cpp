// Normalizations of rows and softmax that exporters write out, put together again; weights and biases join one by one.
#include "graph/rewrite/replace.hpp"

namespace cermet {
namespace {

using enum RoundingClass;

Attributes with_eps(const Match& m) { return {{"eps", m.scalar("e")}}; }
bool has_eps(const Match& m) { return m.scalar("e") >= 0 && m.scalar("e") < 1; }
/// A weight of several dimensions would be normalized over all of them.
bool covers_rows(const Match& m) { return m.type(m.has("w") ? "w" : "b").rank() == 1; }
bool has_eps_and_covers_rows(const Match& m) { return has_eps(m) && covers_rows(m); }
Attributes no_eps(const Match&) { return {{"eps", 0.0}}; }

/// A row's length, where it is a number: sums become means of so many.
bool has_length(const Match& m) {
  return m.type("x").rank() > 0 && m.type("x").dims.back().is_constant() && m.type("x").dims.back().constant() > 0;
}

constexpr std::string_view row_weight = "(a number for each element of a row)",
                           small_eps_row_weight = "(0 <= e < 1; w has a number for each element of a row)";
constexpr std::string_view small_eps = "(0 <= e < 1)";

constexpr AlgebraRow norm_rows[] = {
    // Softmax. With the maximum, which exporters that write it out subtract, or without.
    {"softmax", strict,
     "e = exp(sub(x, reduce_max(x) {axes = \"last\", keepdims = true})); y = div(e, reduce_sum(e) {axes = \"last\", "
     "keepdims = true}) -> y = softmax(x)",
     "", has_length},
    {"softmax-reciprocal", strict,
     "e = exp(sub(x, reduce_max(x) {axes = \"last\", keepdims = true})); y = mul(e, reciprocal(reduce_sum(e) {axes = "
     "\"last\", keepdims = true})) -> "
     "y = softmax(x)",
     "", has_length},
    {"softmax-without-max", fast,
     "e = exp(x); y = div(e, reduce_sum(e) {axes = \"last\", keepdims = true}) -> y = softmax(x)", "", has_length},
    {"softmax-without-max-reciprocal", fast,
     "e = exp(x); y = mul(e, reciprocal(reduce_sum(e) {axes = \"last\", keepdims = true})) -> y = softmax(x)", "",
     has_length},
    {"log-softmax", fast, "log(softmax(x) {log = false}) -> softmax(x) {log = true}"},
    {"log-softmax-of-logsumexp", fast,
     "sub(x, log(reduce_sum(exp(x)) {axes = \"last\", keepdims = true})) -> softmax(x) {log = true}", "", has_length},
    {"log-softmax-shifted", strict,
     "d = sub(x, reduce_max(x) {axes = \"last\", keepdims = true}); y = sub(d, log(reduce_sum(exp(d)) {axes = "
     "\"last\", keepdims = true})) -> "
     "y = softmax(x) {log = true}",
     "", has_length},
    {"exp-of-log-softmax", strict, "exp(softmax(x) {log = true}) -> softmax(x) {log = false}"},
    {"softmax-of-shifted", fast, "softmax(sub(x, reduce_max(x) {axes = \"last\", keepdims = true})) -> softmax(x)", "",
     has_length},
    {"softmax-of-offset", fast, "softmax(add(x, c#)) -> softmax(x)", "finite c"},
    // Layer normalization.
    {"layer-norm", strict,
     "d = sub(x, reduce_mean(x) {axes = \"last\", keepdims = true}); "
     "y = div(d, sqrt(add(reduce_mean(square(d)) {axes = \"last\", keepdims = true}, e#))) -> y = layer_norm(x, -, -)",
     small_eps, has_eps, with_eps},
    {"layer-norm-rsqrt", strict,
     "d = sub(x, reduce_mean(x) {axes = \"last\", keepdims = true}); "
     "y = mul(d, rsqrt(add(reduce_mean(square(d)) {axes = \"last\", keepdims = true}, e#))) -> y = layer_norm(x, -, -)",
     small_eps, has_eps, with_eps},
    {"layer-norm-power", strict,
     "d = sub(x, reduce_mean(x) {axes = \"last\", keepdims = true}); "
     "y = div(d, pow(add(reduce_mean(square(d)) {axes = \"last\", keepdims = true}, e#), 0.5)) -> y = layer_norm(x, -, "
     "-)",
     small_eps, has_eps, with_eps},
    {"layer-norm-inverse-power", strict,
     "d = sub(x, reduce_mean(x) {axes = \"last\", keepdims = true}); "
     "y = mul(d, pow(add(reduce_mean(square(d)) {axes = \"last\", keepdims = true}, e#), -0.5)) -> y = layer_norm(x, "
     "-, -)",
     small_eps, has_eps, with_eps},
    {"layer-norm-scaled-first", strict,
     "d = sub(x, reduce_mean(x) {axes = \"last\", keepdims = true}); "
     "y = mul(d, mul(rsqrt(add(reduce_mean(square(d)) {axes = \"last\", keepdims = true}, e#)), w@)) -> y = "
     "layer_norm(x, w, -)",
     small_eps_row_weight, has_eps_and_covers_rows, with_eps},
    {"layer-norm-scaled-deviation", strict,
     "d = sub(x, reduce_mean(x) {axes = \"last\", keepdims = true}); "
     "y = div(mul(d, w@), sqrt(add(reduce_mean(square(d)) {axes = \"last\", keepdims = true}, e#))) -> y = "
     "layer_norm(x, w, -)",
     small_eps_row_weight, has_eps_and_covers_rows, with_eps},
    {"layer-norm-weight", strict, "mul(layer_norm(x, -, -), w@) -> layer_norm(x, w, -)", row_weight, covers_rows},
    {"layer-norm-bias", strict, "add(layer_norm(x, w, -), b@) -> layer_norm(x, w, b)"},
    {"layer-norm-bias-alone", strict, "add(layer_norm(x, -, -), b@) -> layer_norm(x, -, b)", row_weight, covers_rows},
    // Root-mean-square normalization.
    {"rms-norm", strict,
     "mul(x, rsqrt(add(reduce_mean(square(x)) {axes = \"last\", keepdims = true}, e#))) -> rms_norm(x, -)", small_eps,
     has_eps, with_eps},
    {"rms-norm-div", strict,
     "div(x, sqrt(add(reduce_mean(square(x)) {axes = \"last\", keepdims = true}, e#))) -> rms_norm(x, -)", small_eps,
     has_eps, with_eps},
    {"rms-norm-power", strict,
     "mul(x, pow(add(reduce_mean(square(x)) {axes = \"last\", keepdims = true}, e#), -0.5)) -> rms_norm(x, -)",
     small_eps, has_eps, with_eps},
    {"rms-norm-scaled-first", strict,
     "mul(x, mul(rsqrt(add(reduce_mean(square(x)) {axes = \"last\", keepdims = true}, e#)), w@)) -> rms_norm(x, w)",
     small_eps_row_weight, has_eps_and_covers_rows, with_eps},
    {"rms-norm-weight", strict, "mul(rms_norm(x, -) {weight_offset = 0.0}, w@) -> rms_norm(x, w)", row_weight,
     covers_rows},
    // Length of rows.
    {"l2-norm", fast,
     "div(x, sqrt(reduce_sum(square(x)) {axes = \"last\", keepdims = true})) -> mul(rms_norm(x, -), [1 / sqrt(x)])", "",
     has_length, no_eps},
};

}  // namespace

std::span<const AlgebraRow> norm_rules() { return norm_rows; }

}  // namespace cermet
