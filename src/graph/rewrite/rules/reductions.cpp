// Reductions: monotone maps leave maxima and minima, reductions of reductions are one.
#include <algorithm>
#include <numeric>

#include "graph/rewrite/replace.hpp"
#include "op/schema/axes.hpp"

namespace cermet {
namespace {

using enum RoundingClass;

/// The first node reduces at least one element to each of its results.
bool reduces_something(const Match& m) {
  for (std::size_t n = 0; n < m.nodes.size(); ++n) {
    const Attributes attributes = m.attributes(n);
    if (!attributes.find("keepdims")) continue;
    const Dims& dims = m.editor->value(m.editor->node(m.nodes[n]).inputs[0]).type.dims;
    for (const int axis : wrap_axes(attributes.integers("axes"), static_cast<int>(dims.size()))) {
      const Dim& dim = dims[static_cast<std::size_t>(axis)];
      if (!dim.is_constant() || dim.constant() == 0) return false;
    }
  }
  return true;
}

/// Axes of x that the two reductions take away together, and whether they keep their dimensions: both must, or neither.
std::optional<Attributes> at_once(const Match& m) {
  const Attributes first = m.attributes(0), second = m.attributes(1);
  if (first.flag("keepdims") != second.flag("keepdims") || !first.text("out_dtype").empty()) return {};
  const int rank = m.type("x").rank(), reduced_rank = m.type("s").rank();
  const std::vector<int> gone = wrap_axes(first.integers("axes"), rank);
  std::vector<int> left(static_cast<std::size_t>(rank));
  std::iota(left.begin(), left.end(), 0);
  if (!first.flag("keepdims"))
    std::erase_if(left, [&](int axis) { return std::ranges::find(gone, axis) != gone.end(); });
  Ints axes(gone.begin(), gone.end());
  for (const int axis : wrap_axes(second.integers("axes"), reduced_rank))
    if (std::ranges::find(axes, left[static_cast<std::size_t>(axis)]) == axes.end())
      axes.push_back(left[static_cast<std::size_t>(axis)]);
  std::ranges::sort(axes);
  if (axes.empty()) return {};  // which would mean all
  return Attributes{{"axes", axes}, {"keepdims", first.flag("keepdims")}, {"out_dtype", second.text("out_dtype")}};
}
bool can_reduce_at_once(const Match& m) { return at_once(m).has_value(); }
Attributes reduced_at_once(const Match& m) { return *at_once(m); }

/// Every reduced dimension is 1, so that nothing is reduced; dimensions as numbers, one of which may be left to be
/// inferred.
std::optional<Ints> shape_without(const Match& m) {
  const Attributes attributes = m.attributes(0);
  const Dims &x = m.type("x").dims, &y = m.type("y").dims;
  if (m.type("x").dtype != m.type("y").dtype) return {};
  for (const int axis : wrap_axes(attributes.integers("axes"), static_cast<int>(x.size())))
    if (x[static_cast<std::size_t>(axis)] != Dim(1)) return {};
  Ints shape;
  for (const Dim& dim : y) shape.push_back(dim.is_constant() ? dim.constant() : -1);
  if (std::ranges::count(shape, -1) > 1 || std::ranges::count(shape, 0) > 0) return {};
  return shape;
}
bool reduces_nothing(const Match& m) { return shape_without(m).has_value(); }
Attributes reshaped_without(const Match& m) { return {{"shape", *shape_without(m)}}; }

/// How many elements one result of the sum is made of, where it is a number.
std::optional<double> terms_of_sum(const Match& m) {
  double terms = 1;
  const Dims& dims = m.type("x").dims;
  for (const int axis : wrap_axes(m.attributes(0).integers("axes"), static_cast<int>(dims.size()))) {
    if (!dims[static_cast<std::size_t>(axis)].is_constant()) return {};
    terms *= static_cast<double>(dims[static_cast<std::size_t>(axis)].constant());
  }
  return terms;
}
bool divides_by_terms(const Match& m) {
  const auto terms = terms_of_sum(m);
  return terms && *terms > 0 && m.scalar("c") == *terms;
}
bool multiplies_by_share(const Match& m) {
  const auto terms = terms_of_sum(m);
  return terms && *terms > 0 && is_number(m.scalar("c"), 1 / *terms, m.type("y").dtype);
}
bool divides_back(const Match& m) {
  const auto terms = terms_of_sum(m);
  return terms && *terms > 0 && m.scalar("c") == *terms;
}
Attributes of_first(const Match& m) { return m.attributes(0); }

constexpr std::string_view something = "(something is reduced)", one_list = "(both keep dimensions, or neither does)",
                           ones = "(reduced dimensions are 1)";

constexpr AlgebraRow reduction_rows[] = {
    {"max-of-exps", strict, "reduce_max(exp(x)) -> exp(reduce_max(x))", something, reduces_something, nullptr},
    {"min-of-exps", strict, "reduce_min(exp(x)) -> exp(reduce_min(x))", something, reduces_something, nullptr},
    {"max-of-tanhs", strict, "reduce_max(tanh(x)) -> tanh(reduce_max(x))", something, reduces_something, nullptr},
    {"min-of-tanhs", strict, "reduce_min(tanh(x)) -> tanh(reduce_min(x))", something, reduces_something, nullptr},
    {"max-of-sigmoids", strict, "reduce_max(sigmoid(x)) -> sigmoid(reduce_max(x))", something, reduces_something,
     nullptr},
    {"min-of-sigmoids", strict, "reduce_min(sigmoid(x)) -> sigmoid(reduce_min(x))", something, reduces_something,
     nullptr},
    {"max-of-relus", strict, "reduce_max(relu(x)) -> relu(reduce_max(x))", "number; (something is reduced)",
     reduces_something, nullptr},
    {"min-of-relus", strict, "reduce_min(relu(x)) -> relu(reduce_min(x))", "number; (something is reduced)",
     reduces_something, nullptr},
    {"max-of-floors", strict, "reduce_max(floor(x)) -> floor(reduce_max(x))", something, reduces_something, nullptr},
    {"min-of-floors", strict, "reduce_min(floor(x)) -> floor(reduce_min(x))", something, reduces_something, nullptr},
    {"max-of-ceils", strict, "reduce_max(ceil(x)) -> ceil(reduce_max(x))", something, reduces_something, nullptr},
    {"min-of-ceils", strict, "reduce_min(ceil(x)) -> ceil(reduce_min(x))", something, reduces_something, nullptr},
    {"max-of-rounds", strict, "reduce_max(round(x)) -> round(reduce_max(x))", something, reduces_something, nullptr},
    {"min-of-rounds", strict, "reduce_min(round(x)) -> round(reduce_min(x))", something, reduces_something, nullptr},
    {"max-of-roots", strict, "reduce_max(sqrt(x)) -> sqrt(reduce_max(x))", "x >= 0; (something is reduced)",
     reduces_something, nullptr},
    {"min-of-roots", strict, "reduce_min(sqrt(x)) -> sqrt(reduce_min(x))", "x >= 0; (something is reduced)",
     reduces_something, nullptr},
    {"max-of-negatives", strict, "reduce_max(neg(x)) -> neg(reduce_min(x))", something, reduces_something, of_first},
    {"min-of-negatives", strict, "reduce_min(neg(x)) -> neg(reduce_max(x))", something, reduces_something, of_first},
    {"max-of-multiples", strict, "reduce_max(mul(x, c#)) -> mul(reduce_max(x), c)",
     "c > 0; finite c; (something is reduced)", reduces_something, nullptr},
    {"min-of-multiples", strict, "reduce_min(mul(x, c#)) -> mul(reduce_min(x), c)",
     "c > 0; finite c; (something is reduced)", reduces_something, nullptr},
    {"max-of-quotients", strict, "reduce_max(div(x, c#)) -> div(reduce_max(x), c)",
     "c > 0; finite c; (something is reduced)", reduces_something, nullptr},
    {"min-of-quotients", strict, "reduce_min(div(x, c#)) -> div(reduce_min(x), c)",
     "c > 0; finite c; (something is reduced)", reduces_something, nullptr},
    {"max-of-sums", strict, "reduce_max(add(x, c#)) -> add(reduce_max(x), c)", "finite c; (something is reduced)",
     reduces_something, nullptr},
    {"min-of-sums", strict, "reduce_min(add(x, c#)) -> add(reduce_min(x), c)", "finite c; (something is reduced)",
     reduces_something, nullptr},
    {"max-of-shifts", exact, "reduce_max(shift_right(x, c#)) -> shift_right(reduce_max(x), c)",
     "integer; (something is reduced)", reduces_something, nullptr},
    {"min-of-shifts", exact, "reduce_min(shift_right(x, c#)) -> shift_right(reduce_min(x), c)",
     "integer; (something is reduced)", reduces_something, nullptr},
    {"sum-of-sum", fast, "s = reduce_sum(x); y = reduce_sum(s) -> y = reduce_sum(x)", one_list, can_reduce_at_once,
     reduced_at_once},
    {"mean-of-mean", fast, "s = reduce_mean(x); y = reduce_mean(s) -> y = reduce_mean(x)", one_list, can_reduce_at_once,
     reduced_at_once},
    {"prod-of-prod", fast, "s = reduce_prod(x); y = reduce_prod(s) -> y = reduce_prod(x)", one_list, can_reduce_at_once,
     reduced_at_once},
    {"max-of-max", strict, "s = reduce_max(x); y = reduce_max(s) -> y = reduce_max(x)",
     "number; (both keep dimensions, or neither does)", can_reduce_at_once, reduced_at_once},
    {"min-of-min", strict, "s = reduce_min(x); y = reduce_min(s) -> y = reduce_min(x)",
     "number; (both keep dimensions, or neither does)", can_reduce_at_once, reduced_at_once},
    {"sum-of-one", strict, "reduce_sum(x) -> reshape(x)", "number; (reduced dimensions are 1)", reduces_nothing,
     reshaped_without},
    {"mean-of-one", strict, "reduce_mean(x) -> reshape(x)", ones, reduces_nothing, reshaped_without},
    {"prod-of-one", exact, "reduce_prod(x) -> reshape(x)", "number; (reduced dimensions are 1)", reduces_nothing,
     reshaped_without},
    {"max-of-one", exact, "reduce_max(x) -> reshape(x)", "number; (reduced dimensions are 1)", reduces_nothing,
     reshaped_without},
    {"min-of-one", exact, "reduce_min(x) -> reshape(x)", "number; (reduced dimensions are 1)", reduces_nothing,
     reshaped_without},
    {"mean-from-quotient", strict, "div(reduce_sum(x), c#) -> reduce_mean(x)", "(c is the number of terms)",
     divides_by_terms, of_first},
    {"mean-from-product", fast, "mul(reduce_sum(x), c#) -> reduce_mean(x)", "(c is 1 over the number of terms)",
     multiplies_by_share, of_first},
    {"sum-from-mean", fast, "mul(reduce_mean(x), c#) -> reduce_sum(x)", "(c is the number of terms)", divides_back,
     of_first},
};

}  // namespace

std::span<const AlgebraRow> reduction_rules() { return reduction_rows; }

}  // namespace cermet
