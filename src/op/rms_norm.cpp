#include "op/schema/infer.hpp"
#include "op/schema/operator.hpp"
#include "op/schema/reference.hpp"

namespace cermet::rms_norm_op {
namespace {

std::vector<TensorType> infer(const Problem& p) {
  expect_min_rank(p, 0, 1);
  const std::int64_t trailing = p.has(1) ? p.input(1).rank() : 1;
  if (p.has(1)) {
    expect_min_rank(p, 1, 1);
    expect_min_rank(p, 0, static_cast<int>(trailing));
    for (int axis = -1; axis >= -trailing; --axis) expect_dim(p, 1, axis, dim_of(p, 0, axis), "that of x");
  }
  if (!(p.attributes.number("eps") >= 0)) bad_attribute(p, "eps", "a non-negative number");
  return {{dtype_attribute(p, "out_dtype", p.input(0).dtype, dtypes::real), p.input(0).dims}};
}

void reference(const ReferenceCall& call) {
  const TensorView &x = call.inputs[0], &y = call.outputs[0];
  const double eps = call.attributes.number("eps"), offset = call.attributes.number("weight_offset");
  const std::int64_t length = call.has(1) ? call.inputs[1].elements() : x.shape.back();
  if (x.elements() == 0) return;
  for (std::int64_t begin = 0; begin < x.elements(); begin += length) {
    double squares = 0;
    for (std::int64_t i = 0; i < length; ++i) squares += load(x, begin + i) * load(x, begin + i);
    const double scale = 1 / std::sqrt(squares / static_cast<double>(length) + eps);
    for (std::int64_t i = 0; i < length; ++i) {
      const double weight = call.has(1) ? load(call.inputs[1], i) + offset : 1;
      store(y, begin + i, load(x, begin + i) * scale * weight);
    }
  }
}

std::vector<Case> cases() {
  std::vector<Case> list;
  for (DType t : {DType::f32, DType::bf16, DType::f16})
    for (std::int64_t h : {1, 7, 64, 129, 4096})
      list.push_back({fmt::format("{}_h{}", name_of(t), h),
                      {CaseOperand{{t, {5, h}}, normal()}, CaseOperand{{t, {h}}, normal(0.2, 1)}},
                      {{"eps", 1e-6}}});
  list.push_back({"no_weight", {CaseOperand{{DType::f32, {3, 100}}}}});
  list.push_back({"weight_offset",
                  {CaseOperand{{DType::bf16, {3, 96}}}, CaseOperand{{DType::f32, {96}}, normal(0.1)}},
                  {{"weight_offset", 1.0}}});
  list.push_back({"two_trailing", {CaseOperand{{DType::f32, {3, 4, 6}}}, CaseOperand{{DType::f32, {4, 6}}}}});
  list.push_back({"strided", {CaseOperand{{DType::f32, {4, 33}}, normal(), 7}, CaseOperand{{DType::bf16, {33}}}}});
  list.push_back({"f32_to_bf16",
                  {CaseOperand{{DType::f32, {4, 256}}}, CaseOperand{{DType::bf16, {256}}}},
                  {{"out_dtype", "bf16"}}});
  list.push_back({"no_rows", {CaseOperand{{DType::f32, {0, 16}}}, CaseOperand{{DType::f32, {16}}}}});
  list.push_back({"zero_row", {CaseOperand{{DType::f32, {2, 16}}, constant(0)}, CaseOperand{{DType::f32, {16}}}}});
  list.push_back(
      {"nan_row",
       {CaseOperand{{DType::f32, {2, 5}}, values({1, 2, NAN, 4, 5, 6, 7, 8, 9, 10})}, CaseOperand{{DType::f32, {5}}}}});
  return list;
}

}  // namespace

OpSpec define() {
  return {
      .category = "Normalization",
      .summary = "Root-mean-square normalization over the last dimensions",
      .semantics =
          "y = x / sqrt(mean(x^2) + eps) * (weight + weight_offset), statistics in float32 over the trailing "
          "dimensions that the weight covers (the last one "
          "without a weight). weight_offset = 1 is Gemma's 1 + w. A row with a NaN gives a row of NaN.",
      .inputs = {{"x", dtypes::real, "[.., H]", "rows to normalize", Mapping::many_to_many},
                 {"weight", dtypes::real, "[H]", "scale per element; may cover several trailing dimensions",
                  Mapping::one_to_one, true}},
      .outputs = {{"y", dtypes::real, "[.., H]", "normalized rows"}},
      .attributes = {{"eps", 1e-6, "added to the mean square"},
                     {"weight_offset", 0.0, "added to the weight"},
                     {"out_dtype", std::string(), "element type of y; that of x where empty"}},
      .infer = infer,
      .reference = reference,
      .operations = [](const Problem& p) { return 4.0 * static_cast<double>(p.input(0).elements().value(p.maximum)); },
      .rounding_depth = [](const Problem& p) { return static_cast<double>(p.size(0, -1)) / 2 + 8; },
      .cases = cases,
      .dense_dims = [](const Problem& p) { return p.has(1) ? p.input(1).rank() : 1; },
      .in_place = {0},
  };
}

}  // namespace cermet::rms_norm_op
