#include <algorithm>
#include <limits>

#include "op/schema/infer.hpp"
#include "op/schema/operator.hpp"
#include "op/schema/reference.hpp"

namespace cermet::softmax_op {
namespace {

/// Roundings behind a sum of `length` terms in at least four lanes, and the few of exp and log.
double depth_of(std::int64_t length) { return static_cast<double>(length) / 4 + 16; }

std::vector<TensorType> infer(const Problem& p) {
  expect_min_rank(p, 0, 1);
  const DType x = p.input(0).dtype;
  if (x == DType::f64 && !p.attributes.text("out_dtype").empty())
    bad_attribute(p, "out_dtype", "nothing for an operand of type f64");
  return {{dtype_attribute(p, "out_dtype", x, dtypes::real), p.input(0).dims}};
}

void reference(const ReferenceCall& call) {
  const TensorView &x = call.inputs[0], &y = call.outputs[0];
  const bool logarithm = call.attributes.flag("log");
  if (x.elements() == 0) return;
  const std::int64_t length = x.shape.back();
  for (std::int64_t begin = 0; begin < x.elements(); begin += length) {
    double largest = -std::numeric_limits<double>::infinity(), sum = 0;
    for (std::int64_t i = begin; i < begin + length; ++i) largest = std::max(load(x, i), largest);
    for (std::int64_t i = begin; i < begin + length; ++i) sum += std::exp(load(x, i) - largest);
    for (std::int64_t i = begin; i < begin + length; ++i) {
      const double distance = load(x, i) - largest, p = std::exp(distance) / sum;
      store(y, i, logarithm ? distance - std::log(sum) : p);
      // The rounding of x - max is |x - max| * 2^-24: relative to exp of it, absolute for its logarithm.
      const double relative = p > 0 ? 1 + std::abs(distance) / depth_of(length) : 1;
      note_magnitude(call, 0, i, logarithm ? 1 + std::abs(distance) + std::log(sum) : p * relative);
    }
  }
}

std::vector<Case> cases() {
  std::vector<Case> list;
  for (bool logarithm : {false, true}) {
    const char* prefix = logarithm ? "log_" : "";
    for (DType t : {DType::f32, DType::bf16, DType::f16})
      for (std::int64_t n : {1, 7, 64, 129, 1100})
        list.push_back({fmt::format("{}{}_n{}", prefix, name_of(t), n),
                        {CaseOperand{{t, {3, n}}, normal(3)}},
                        {{"log", logarithm}}});
    const auto add = [&](const char* name, CaseOperand x, std::string out_dtype = "") {
      list.push_back(
          {std::string(prefix) + name, {std::move(x)}, {{"log", logarithm}, {"out_dtype", std::move(out_dtype)}}});
    };
    add("f64", {{DType::f64, {3, 129}}, normal(3)});
    add("f64_strided", {{DType::f64, {2, 3, 7}}, normal(100), 3});
    add("f64_special",
        {{DType::f64, {4, 3}}, values({1, -INFINITY, 2, NAN, 0, 1, INFINITY, 0, 1, -INFINITY, -INFINITY, -INFINITY})});
    add("wide_range", {{DType::f32, {3, 300}}, uniform(-120, 120)});
    add("large_values", {{DType::f32, {2, 33}}, normal(1, 3e38)});
    add("equal_values", {{DType::f32, {2, 100}}, constant(-7)});
    add("masked", {{DType::f32, {2, 6}}, values({1, -INFINITY, 2, -INFINITY, -INFINITY, 3})});
    add("all_masked", {{DType::f32, {2, 3}}, values({-INFINITY, -INFINITY, -INFINITY, 1, 2, 3})});
    add("infinite", {{DType::f32, {2, 3}}, values({INFINITY, 0, 1, 1, 2, 3})});
    add("nan_row", {{DType::f32, {2, 3}}, values({NAN, 0, 1, 1, 2, 3})});
    add("nan_last", {{DType::f32, {2, 3}}, values({0, 1, NAN, 1, 2, 3})});
    add("strided", {{DType::f32, {4, 33}}, normal(), 7});
    add("three_axes", {{DType::bf16, {2, 3, 40}}});
    add("f32_to_bf16", {{DType::f32, {4, 70}}}, "bf16");
    add("f16_to_f32", {{DType::f16, {4, 70}}}, "f32");
    add("no_rows", {{DType::f32, {0, 16}}});
    add("no_columns", {{DType::f32, {3, 0}}});
  }
  return list;
}

}  // namespace

OpSpec define() {
  return {
      .category = "Reductions",
      .summary = "Softmax along the last dimension, or its logarithm",
      .semantics =
          "y = exp(x - max) / sum(exp(x - max)) along the last dimension; with `log`, y = x - max - log(sum(exp(x - "
          "max))). Sums in float32, one rounding at "
          "the "
          "end. An entry of -inf gets probability 0; a row that is all -inf, or holds +inf or NaN, gives NaN.",
      .inputs = {{"x", dtypes::real | DTypeSet{DType::f64}, "[.., N]", "rows", Mapping::many_to_many}},
      .outputs = {{"y", dtypes::real | DTypeSet{DType::f64}, "[.., N]", "rows that sum to 1"}},
      .attributes = {{"log", false, "give the natural logarithm of the result"},
                     {"out_dtype", std::string(), "element type of y; that of x where empty"}},
      .infer = infer,
      .reference = reference,
      .operations = [](const Problem& p) { return 4.0 * static_cast<double>(p.input(0).elements().value(p.maximum)); },
      .rounding_depth = [](const Problem& p) { return depth_of(p.size(0, -1)); },
      .cases = cases,
      .in_place = {0},
  };
}

}  // namespace cermet::softmax_op
