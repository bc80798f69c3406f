// The larger and the smaller of two, and limits.
#include <algorithm>

#include "graph/rewrite/replace.hpp"

namespace cermet {
namespace {

using enum RoundingClass;

/// Limits of a clip between two captured numbers.
Attributes between_numbers(const Match& m) { return {{"low", m.scalar("c1")}, {"high", m.scalar("c2")}}; }

bool clips_in_order(const Match& m) {
  const Attributes outer = m.attributes(1), inner = m.attributes(0);
  return outer.number("low") <= outer.number("high") && inner.number("low") <= inner.number("high");
}
/// What both leave: the limits of the inner one, limited by the outer one.
Attributes clipped_limits(const Match& m) {
  const Attributes outer = m.attributes(1), inner = m.attributes(0);
  const auto limited = [&](std::string_view name) {
    return std::clamp(inner.number(name), outer.number("low"), outer.number("high"));
  };
  return {{"low", limited("low")}, {"high", limited("high")}};
}
bool clips_above(const Match& m) {
  return m.attributes(1).number("low") <= m.attributes(1).number("high") && m.attributes(1).number("high") >= 0;
}
Attributes clipped_above(const Match& m) {
  const Attributes outer = m.attributes(1);
  return {{"low", std::max(0.0, outer.number("low"))}, {"high", outer.number("high")}};
}
bool relu_of_clip(const Match& m) {
  return m.attributes(0).number("low") <= m.attributes(0).number("high") && m.attributes(0).number("high") >= 0;
}
Attributes clip_from_zero(const Match& m) {
  const Attributes inner = m.attributes(0);
  return {{"low", std::max(0.0, inner.number("low"))}, {"high", inner.number("high")}};
}

constexpr AlgebraRow lattice_rows[] = {
    {"max-itself", exact, "max(x, x) -> x", "number"},
    {"min-itself", exact, "min(x, x) -> x", "number"},
    {"max-again", strict, "max(max(x, z), z) -> max(x, z)", "number"},
    {"min-again", strict, "min(min(x, z), z) -> min(x, z)", "number"},
    {"max-of-min", fast, "max(min(x, z), z) -> z", "number"},
    {"min-of-max", fast, "min(max(x, z), z) -> z", "number"},
    {"max-and-min", fast, "add(max(a, b), min(a, b)) -> add(a, b)", "number"},
    {"max-times-min", fast, "mul(max(a, b), min(a, b)) -> mul(a, b)", "number"},
    {"max-less-min", fast, "sub(max(a, b), min(a, b)) -> abs(sub(a, b))"},
    {"max-of-negative", strict, "max(x, neg(x)) -> abs(x)"},
    {"min-of-negative", strict, "min(x, neg(x)) -> neg(abs(x))"},
    {"max-zero", strict, "max(x, 0) -> relu(x)", "number"},
    {"clip-from-min-max", strict, "min(max(x, c1#), c2#) -> clip(x)", "c1 <= c2", nullptr, between_numbers},
    {"clip-from-max-min", strict, "max(min(x, c2#), c1#) -> clip(x)", "c1 <= c2", nullptr, between_numbers},
    {"clip-from-relu", strict, "min(relu(x), c2#) -> clip(x)", "c2 >= 0", nullptr,
     [](const Match& m) {
       return Attributes{{"low", 0.0}, {"high", m.scalar("c2")}};
     }},
    {"clip-of-clip", strict, "clip(clip(x)) -> clip(x)", "(lower limits are not above upper ones)", clips_in_order,
     clipped_limits},
    {"clip-of-relu", strict, "clip(relu(x)) -> clip(x)", "(an upper limit of 0 or more)", clips_above, clipped_above},
    {"relu-of-clip", strict, "relu(clip(x)) -> clip(x)", "(an upper limit of 0 or more)", relu_of_clip, clip_from_zero},
    {"relu-of-positive", strict, "relu(x) -> x", "number; x >= 0"},
    {"abs-of-positive", fast, "abs(x) -> x", "number; x >= 0"},
    {"abs-of-square", exact, "abs(square(x)) -> square(x)"},
    {"max-of-bounded", strict, "max(x, c#) -> x", "x >= c"},
    {"min-of-bounded", strict, "min(x, c#) -> x", "x <= c"},
    {"sub-relu", fast, "sub(x, relu(x)) -> min(x, 0)", "number"},
    {"relu-difference", fast, "sub(relu(x), relu(neg(x))) -> x"},
    {"relu-sum", fast, "add(relu(x), relu(neg(x))) -> abs(x)"},
    {"sign-times", fast, "mul(sign(x), x) -> abs(x)", "number"},
    {"sign-times-abs", fast, "mul(sign(x), abs(x)) -> x", "number"},
    {"max-by-choice", exact, "where(less(a, b), b, a) -> max(a, b)", "integer"},
    {"min-by-choice", exact, "where(less(a, b), a, b) -> min(a, b)", "integer"},
};

}  // namespace

std::span<const AlgebraRow> lattice_rules() { return lattice_rows; }

}  // namespace cermet
