// Every row of algebra runs both sides on the reference, over random shapes and values inside its side condition.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "graph/rewrite/cost.hpp"
#include "graph/rewrite/replace.hpp"
#include "graph/text.hpp"
#include "graph/verify.hpp"
#include "tests/graph/evaluate.hpp"
#include "tests/graph/rule_case.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/golden.hpp"

namespace cermet {
namespace {

constexpr int fast_cases = 40, long_cases = 10000, draws_of_values = 4;
/// Units in the last place, of the largest value on the way, that a rule which is not exact may cost.
constexpr double most_units = 256;

double unit_of(DType dtype) {
  switch (dtype) {
    case DType::bf16: return 0x1p-9;
    case DType::f16: return 0x1p-12;
    case DType::f64: return 0x1p-53;
    default: return 0x1p-24;
  }
}

/// The graph in float64; nothing where an operator does not know it.
std::optional<Graph> widened(const Graph& graph) {
  Graph wide;
  std::vector<ValueId> moved(graph.values().size());
  const auto to_wide = [](DType t) { return is_floating(t) ? DType::f64 : t; };
  const auto declare = [&](std::size_t v) {
    const Value& value = graph.values()[v];
    const TensorType type{to_wide(value.type.dtype), value.type.dims};
    if (value.kind == ValueKind::input) moved[v] = wide.add_input(value.name, type);
    else if (!value.data()) moved[v] = wide.add_constant(value.name, type);
    else {
      const auto count = static_cast<std::size_t>(type.elements().constant());
      std::vector<std::byte> bytes(count * size_of(type.dtype));
      for (std::size_t e = 0; e < count; ++e)
        format::store_element(
            bytes.data(), type.dtype, static_cast<std::int64_t>(e),
            format::load_element(value.data()->bytes().data(), value.type.dtype, static_cast<std::int64_t>(e)));
      moved[v] = wide.add_constant(value.name, TensorData(type, bytes));
    }
  };
  try {
    for (std::size_t v = 0; v < graph.values().size(); ++v)
      if (graph.values()[v].kind != ValueKind::intermediate) declare(v);
    for (const Node& node : graph.nodes()) {
      std::vector<ValueId> inputs;
      std::vector<std::string> names;
      for (const ValueId id : node.inputs) inputs.push_back(id ? moved[id.at()] : id);
      for (const ValueId id : node.outputs) names.push_back(graph.value(id).name);
      Attributes attributes;
      for (const auto& [name, value] : node.attributes) {
        const auto* text = std::get_if<std::string>(&value);
        const auto dtype = text && name == "out_dtype" ? dtype_from_name(*text) : std::nullopt;
        attributes.set(name, dtype ? AttributeValue(std::string(name_of(to_wide(*dtype)))) : value);
      }
      const auto made = wide.apply_all(node.op, std::move(inputs), attributes, names);
      for (std::size_t o = 0; o < made.size(); ++o) moved[node.outputs[o].at()] = made[o];
    }
  } catch (const Error&) {
    return {};
  }
  for (const GraphOutput& output : graph.outputs()) wide.add_output(output.name, moved[output.value.at()]);
  return wide;
}

double largest(const Graph& graph, const Evaluation& evaluation) {
  double most = 0;
  for (std::size_t v = 0; v < graph.values().size(); ++v)
    for (const double x : evaluation.elements({static_cast<std::int32_t>(v)}))
      if (std::isfinite(x)) most = std::max(most, std::abs(x));
  return most;
}

struct Tried {
  int cases = 0;
  std::string failure;
};

/// Whether the operators of a strict rule say which zero they give, and do not overflow on the way in one spelling
/// alone.
bool says_zeros(const Rule& rule) {
  if (rule.rule_class == RuleClass::raising) return false;  // one operator computes otherwise what several did
  return std::ranges::none_of(std::array{"max(", "min(", "relu(", "clip(", "reduce_", "linear(", "conv(", "matmul("},
                              [&](const char* op) { return rule.summary.find(op) != std::string_view::npos; });
}

/// Whether a product of two values as large as the largest on the way overflows. Fast rules promise nothing then.
bool near_limits(double most, DType dtype) {
  return most * most > (dtype == DType::f16 ? 65504.0 : static_cast<double>(std::numeric_limits<float>::max()));
}

/// Whether the element that the rule gives is right.
bool is_right(const Rule& rule, RoundingClass rounding, double before, double after, double truth, double bound,
              bool all_finite) {
  if (rounding == RoundingClass::exact)
    return std::isnan(before) ? std::isnan(after) : before == after && std::signbit(before) == std::signbit(after);
  // One operator may be right where a step of its formula is not finite.
  if (rule.rule_class == RuleClass::raising && (after == truth || std::abs(after - truth) <= bound)) return true;
  const bool says_zeros = cermet::says_zeros(rule);
  if (rounding == RoundingClass::strict && says_zeros) {
    if (before == 0 && after == 0 && std::signbit(before) != std::signbit(after)) return false;
    if (std::isinf(before) && before != after) return false;
  }
  if (rounding == RoundingClass::strict && !(all_finite && !std::isfinite(before))) {
    if (std::isnan(before) != std::isnan(after)) return false;
    if (std::isinf(before) || std::isinf(after))
      return before == after || (std::isfinite(before) && std::abs(before) > 1e30);
  }
  if (!all_finite || !std::isfinite(before) || !std::isfinite(truth)) return true;
  return std::isfinite(after) && std::abs(after - truth) <= bound;
}

/// Draws cases until so many were inside the side condition, or one was wrong.
Tried try_rule(const Rule& rule, int wanted, std::uint32_t seed) {
  Tried tried;
  RuleCase source(rule, seed);
  for (int attempts = 0; tried.cases < wanted && attempts < 3000 * (1 + wanted / draws_of_values); ++attempts) {
    const auto before = source.draw();
    if (!before) continue;
    const Rewritten rewritten = rewrite(*before, {&rule, 1}, RoundingClass::fast);
    if (rewritten.counts.empty()) continue;
    verify(rewritten.graph);
    if (work_of(rewritten.graph) >= work_of(*before))
      return {tried.cases, "saves nothing:\n" + to_text(*before) + to_text(rewritten.graph)};
    const auto wide = widened(*before);
    const TensorType& type = before->type(before->outputs()[0].value);
    const bool is_whole = rule.condition.types() != Condition::Types::real && is_integer(type.dtype);
    DType dtype = type.dtype;
    for (const Value& value : before->values())
      if (is_floating(value.type.dtype) && (unit_of(value.type.dtype) > unit_of(dtype) || !is_floating(dtype)))
        dtype = value.type.dtype;
    RoundingClass rounding = is_whole ? RoundingClass::exact : rule.rounding;
    if (rounding == RoundingClass::strict && size_of(dtype) < 4) rounding = RoundingClass::fast;
    for (int draw = 0; draw < draws_of_values && tried.cases < wanted; ++draw, ++tried.cases) {
      const auto elements = source.draw_elements(*before, draw == draws_of_values - 1);
      bool all_finite = true;
      for (const auto& [name, list] : elements)
        all_finite = all_finite && std::ranges::all_of(list, [](double x) { return std::isfinite(x); });
      const Evaluation old_way(*before, {}, elements), new_way(rewritten.graph, {}, elements);
      std::optional<Evaluation> exact_way;
      if (wide) exact_way.emplace(*wide, SymbolValues{}, elements);
      const double most = std::max({largest(*before, old_way), largest(rewritten.graph, new_way), 1e-30});
      const double bound = most_units * unit_of(dtype) * most *
                           std::max(1.0, std::log(most));  // an exponential's error grows with its exponent
      for (const GraphOutput& output : before->outputs()) {
        const auto x = old_way.outputs().at(output.name), y = new_way.outputs().at(output.name),
                   z = exact_way ? exact_way->outputs().at(output.name) : x;
        for (std::size_t i = 0; i < x.size(); ++i)
          if (x.size() != y.size() || (!is_right(rule, rounding, x[i], y[i], z[i], bound, all_finite) &&
                                       !(rounding == RoundingClass::fast && near_limits(most, dtype))))
            return {tried.cases, fmt::format("element {}: {} before, {} after, {} in float64, bound {}\n{}{}", i, x[i],
                                             y[i], z[i], bound, to_text(*before), to_text(rewritten.graph))};
      }
    }
  }
  return tried;
}

std::vector<const Rule*> rows_of_algebra() {
  std::vector<const Rule*> list;
  for (const Rule& rule : rewrite_rules())
    if (rule.rule_class != RuleClass::operators) list.push_back(&rule);
  return list;
}

std::string test_name(const testing::TestParamInfo<const Rule*>& info) {
  std::string name(info.param->name);
  std::ranges::replace(name, '-', '_');
  return name;
}

class RuleCases : public testing::TestWithParam<const Rule*> {};
TEST_P(RuleCases, KeepResults) {
  const Tried tried = try_rule(*GetParam(), fast_cases, 1);
  EXPECT_EQ(tried.failure, "");
  EXPECT_EQ(tried.cases, fast_cases) << "too few draws inside the side condition";
}
INSTANTIATE_TEST_SUITE_P(Algebra, RuleCases, testing::ValuesIn(rows_of_algebra()), test_name);

class LongRuleCases : public testing::TestWithParam<const Rule*> {};
TEST_P(LongRuleCases, KeepResults) {
  const Tried tried = try_rule(*GetParam(), long_cases, 2);
  EXPECT_EQ(tried.failure, "");
  EXPECT_EQ(tried.cases, long_cases) << "too few draws inside the side condition";
}
INSTANTIATE_TEST_SUITE_P(Algebra, LongRuleCases, testing::ValuesIn(rows_of_algebra()), test_name);

/// The self-test is one that can fail.
TEST(Algebra, WrongRulesAreCaught) {
  using enum RoundingClass;
  constexpr AlgebraRow wrong[] = {
      {"sign", exact, "neg(sub(a, b)) -> sub(a, b)"},
      {"negative-root", fast, "sqrt(square(x)) -> x"},
      {"zero-keeps-its-sign", exact, "add(x, 0) -> x"},
      {"zero-lost", strict, "add(x, 0) -> x"},
      {"overflow-lost", strict, "sqrt(square(x)) -> abs(x)"},
      {"sign-of-difference-lost", strict, "neg(sub(a, b)) -> sub(b, a)"},
      {"undefined-log", strict, "add(log(a), log(b)) -> log(mul(a, b))"},
      {"wrapped-quotient", exact, "div(mul(a, b), b) -> a", "integer"},
      {"not-a-number", exact, "where(less(a, b), b, a) -> max(a, b)"},
      {"not-associative", exact, "add(add(x, c1#), c2#) -> add(x, [c1 + c2])"},
      {"misplaced-epsilon", strict,
       "div(x, add(sqrt(reduce_mean(square(x)) {axes = \"last\", keepdims = true}), e#)) -> rms_norm(x, -)",
       "e > 0; e < 1", nullptr,
       [](const Match& m) {
         return Attributes{{"eps", m.scalar("e")}};
       }},
      {"printed-wrongly", fast, "add(mul(a, c), mul(a, b)) -> mul(add(a, b), c)"},
  };
  for (const AlgebraRow& row : wrong)
    EXPECT_NE(try_rule(algebra_rule(row, RuleClass::identities), 2000, 3).failure, "") << row.text;
}

TEST(Algebra, EveryRowHasANameOfItsOwnAndALowerCost) {
  std::map<std::string_view, int> names;
  for (const Rule& rule : rewrite_rules()) EXPECT_EQ(++names[rule.name], 1) << rule.name;
  EXPECT_GE(rows_of_algebra().size(), 149u);
}

TEST(Algebra, TextsNameWhatIsWrong) {
  const auto parse = [](std::string_view text, std::string_view when) {
    return algebra_rule({"r", RoundingClass::fast, text, when}, RuleClass::powers);
  };
  EXPECT_EQ(error_text([&] { parse("exp(log(x)) -> x", "x above 0"); }),
            "condition \"x above 0\": expected a condition that there is at column 3, found \"above 0\"");
  EXPECT_EQ(error_text([&] { parse("exp(log(x)) -> x", "z > 0"); }),
            "condition \"z > 0\": expected names of the pattern, found 'z'");
  EXPECT_EQ(error_text([&] { parse("mul(x, c#) -> mul(x, [d])", ""); }),
            "pattern \"mul(x, [d])\": expected nothing that is not captured before at column 10, found \"])\"");
}

/// The lines of a graph but its first and last.
std::string body_of(const Graph& graph) {
  const std::string text = to_text(graph);
  const std::size_t begin = text.find('\n') + 1;
  return text.substr(begin, text.rfind('}') - begin);
}

/// A file for each class: every row with an example.
TEST(Algebra, ExamplesAreAsApproved) {
  std::map<RuleClass, std::string> texts;
  for (const Rule* rule : rows_of_algebra()) {
    RuleCase source(*rule, 7);
    std::string& text = texts[rule->rule_class];
    for (int attempts = 0; attempts < 100000; ++attempts) {
      const auto before = source.draw();
      if (!before) continue;
      const Rewritten after = rewrite(*before, {rule, 1}, RoundingClass::fast);
      if (after.counts.empty() || after.counts[0].times != 1) continue;
      text += fmt::format("{} ({}): {}\n{}{}  ->\n{}\n", rule->name, name_of(rule->rounding), rule->summary,
                          rule->when.empty() ? "" : fmt::format("when {}\n", rule->when), body_of(*before),
                          body_of(after.graph));
      break;
    }
  }
  for (const auto& [rule_class, text] : texts)
    expect_golden(fmt::format("graph/golden/rewrite/{}.txt", name_of(rule_class)), text);
}

}  // namespace
}  // namespace cermet
