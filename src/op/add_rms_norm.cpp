#include "op/norm.hpp"
#include "op/operands.hpp"
#include "op/schema/operator.hpp"
#include "op/schema/reference.hpp"

namespace cermet::add_rms_norm_op {

namespace in = op::add_rms_norm;
namespace {

std::vector<TensorType> infer(const Problem& p) {
  expect_min_rank(p, in::x, 1);
  expect_dims(p, in::residual, p.input(in::x).dims, "those of x");
  expect_trailing_of_x(p, in::weight);
  expect_eps(p);
  const DType y = dtype_attribute(p, "out_dtype", p.input(in::x).dtype, dtypes::real);
  return {{y, p.input(in::x).dims}, p.input(in::residual)};
}

void reference(const ReferenceCall& call) {
  const double eps = call.attributes.number("eps"), offset = call.attributes.number("weight_offset");
  const bool round_sum = call.attributes.flag("round_sum");
  const TensorView& x = call.inputs[in::x];
  const std::int64_t length = call.has(in::weight) ? call.inputs[in::weight].elements() : x.shape.back();
  if (x.elements() == 0) return;
  for (std::int64_t begin = 0; begin < x.elements(); begin += length) {
    double squares = 0;
    for (std::int64_t i = 0; i < length; ++i) squares += std::pow(residual_sum(call, begin + i, round_sum), 2);
    const double scale = 1 / std::sqrt(squares / static_cast<double>(length) + eps);
    for (std::int64_t i = 0; i < length; ++i) {
      const double weight = call.has(in::weight) ? load(call.inputs[in::weight], i) + offset : 1;
      const double sum = residual_sum(call, begin + i, round_sum);
      store(call.outputs[0], begin + i, sum * scale * weight);
      store(call.outputs[1], begin + i, sum);
    }
  }
}

std::vector<Case> cases() {
  std::vector<Case> list;
  const auto add = [&](std::string name, Dims dims, DType x, DType residual, std::optional<DType> weight,
                       Attributes attributes = {}, const Fill& fill = normal()) {
    std::optional<CaseOperand> w;
    if (weight) w = CaseOperand{{*weight, {dims.back()}}, normal(0.2, 1)};
    list.push_back({std::move(name),
                    {CaseOperand{{x, dims}, fill}, CaseOperand{{residual, dims}, fill}, w},
                    std::move(attributes)});
  };
  using enum DType;
  for (DType t : {f32, bf16, f16})
    for (std::int64_t h : {1, 7, 129, 1030}) {
      add(fmt::format("{}_h{}", name_of(t), h), {3, h}, t, t, t, {{"eps", 1e-6}});
      add(fmt::format("f32_residual_{}_h{}", name_of(t), h), {3, h}, t, f32, t, {{"eps", 1e-6}});
    }
  for (std::string out : {"bf16", "f16"}) add("f32_to_" + out, {4, 256}, f32, f32, bf16, {{"out_dtype", out}});
  for (DType t : {f32, bf16, f16})
    add(fmt::format("round_sum_{}", name_of(t)), {3, 96}, f32, t, bf16, {{"round_sum", true}, {"out_dtype", "bf16"}});
  add("no_weight", {2, 3, 40}, bf16, f32, std::nullopt);
  add("weight_offset", {3, 96}, bf16, bf16, f32, {{"weight_offset", 1.0}});
  add("no_rows", {0, 16}, f32, f32, f32);
  add("no_columns", {4, 0}, f32, f32, f32);
  add("zero_row", {2, 16}, f32, f32, f32, {}, constant(0));
  add("nan_row", {2, 5}, f32, f32, f32, {}, values({1, 2, NAN, 4, 5, 6, 7, 8, 9, 10}));
  list.push_back({"strided",
                  {CaseOperand{{bf16, {4, 33}}, normal(), 7}, CaseOperand{{f32, {4, 33}}, normal(), 3},
                   CaseOperand{{bf16, {33}}}}});
  list.push_back(
      {"two_trailing", {CaseOperand{{f32, {3, 4, 6}}}, CaseOperand{{f32, {3, 4, 6}}}, CaseOperand{{f32, {4, 6}}}}});
  return list;
}

}  // namespace

OpSpec define() {
  return {
      .category = "Normalization",
      .summary = "Residual addition followed by root-mean-square normalization",
      .semantics =
          "sum = x + residual, stored in the residual's type; y = sum / sqrt(mean(sum^2) + eps) * (weight + "
          "weight_offset) over the trailing dimensions that "
          "the "
          "weight covers (the last one without a weight). Statistics and y use the float32 sum before its rounding for "
          "storage; round_sum = true uses the "
          "stored, "
          "rounded sum. In place works: sum may share the residual's memory, y that of x. A row with a NaN gives a row "
          "of NaN in y.",
      .inputs = {{"x", dtypes::real, "[.., H]", "a layer's output", Mapping::many_to_many},
                 {"residual", dtypes::real, "[.., H]", "the residual stream", Mapping::many_to_many},
                 {"weight", dtypes::real, "[H]", "scale per element; may cover several trailing dimensions",
                  Mapping::one_to_one, true}},
      .outputs = {{"y", dtypes::real, "[.., H]", "normalized rows"},
                  {"sum", dtypes::real, "[.., H]", "x + residual, in the residual's type"}},
      .attributes = {{"eps", 1e-6, "added to the mean square"},
                     {"weight_offset", 0.0, "added to the weight"},
                     round_sum_attribute(),
                     {"out_dtype", std::string(), "element type of y; that of x where empty"}},
      .infer = infer,
      .reference = reference,
      .operations =
          [](const Problem& p) { return 5.0 * static_cast<double>(p.input(in::x).elements().value(p.maximum)); },
      .rounding_depth = [](const Problem& p) { return norm_rounding_depth(p, in::weight); },
      .cases = cases,
      .dense_dims = [](const Problem& p) { return trailing_dims(p, in::weight); },
      .in_place = {0, 1},
  };
}

}  // namespace cermet::add_rms_norm_op
