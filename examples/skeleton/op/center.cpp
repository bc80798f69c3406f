// Skeleton of an operator. Copy to src/op/NAME.cpp, call its namespace NAME_op, add the row X(NAME) to src/op/ops.inc,
// and give it a kernel (see kernel/cpu/ beside this folder): the schema table, `cermet ops`, the C interface and the
// conformance test take both from there.
#include "op/schema/infer.hpp"
#include "op/schema/operator.hpp"
#include "op/schema/reference.hpp"

namespace cermet::center_op {
namespace {

/// Result types from operand types. Element types and attribute names were checked against the schema before;
/// dimensions may be symbolic, so compare them as Dims. Every error names the operand or attribute, what was expected
/// and what was found.
std::vector<TensorType> infer(const Problem& p) {
  expect_min_rank(p, 0, 1);
  if (!(p.attributes.number("strength") >= 0)) bad_attribute(p, "strength", "a non-negative number");
  return {{dtype_attribute(p, "out_dtype", p.input(0).dtype, dtypes::real), p.input(0).dims}};
}

/// The definition, in plain C++ and doubles. load() and store() take any element type and strides.
void reference(const ReferenceCall& call) {
  const TensorView &x = call.inputs[0], &y = call.outputs[0];
  if (x.elements() == 0) return;
  const double strength = call.attributes.number("strength");
  const std::int64_t length = x.shape.back();
  for (std::int64_t begin = 0; begin < x.elements(); begin += length) {
    double sum = 0, magnitude = 0;
    for (std::int64_t i = begin; i < begin + length; ++i) {
      sum += load(x, i);
      magnitude += std::abs(load(x, i));
    }
    const double shift = strength * sum / static_cast<double>(length);
    for (std::int64_t i = begin; i < begin + length; ++i) {
      store(y, i, load(x, i) - shift);
      // Terms cancel here, so the error of a kernel scales with what was added and not with the result.
      note_magnitude(call, 0, i, std::abs(load(x, i)) + strength * magnitude / static_cast<double>(length));
    }
  }
}

/// What kernels are tested on: every element type, odd sizes, strided rows, no rows, non-finite values, each attribute.
std::vector<Case> cases() {
  std::vector<Case> list;
  for (DType t : {DType::f32, DType::bf16, DType::f16})
    for (std::int64_t h : {1, 7, 129})
      list.push_back({fmt::format("{}_h{}", name_of(t), h), {CaseOperand{{t, {5, h}}, normal(1, 3)}}});
  list.push_back({"half_strength", {CaseOperand{{DType::f32, {3, 33}}}}, {{"strength", 0.5}}});
  list.push_back({"f32_to_bf16", {CaseOperand{{DType::f32, {4, 64}}}}, {{"out_dtype", "bf16"}}});
  list.push_back({"strided", {CaseOperand{{DType::f32, {4, 33}}, normal(), 7}}});
  list.push_back({"no_rows", {CaseOperand{{DType::f32, {0, 16}}}}});
  list.push_back({"nan_row", {CaseOperand{{DType::f32, {2, 3}}, values({1, NAN, 3, 4, 5, 6})}}});
  return list;
}

}  // namespace

OpSpec define() {
  return {
      .category = "Normalization",
      .summary = "Subtracts the mean of each row",
      .semantics =
          "y = x - strength * mean(x) over the last dimension, in float32 with one rounding at the end. A row with a "
          "NaN gives a row of NaN.",
      .inputs = {{"x", dtypes::real, "[.., H]", "rows", Mapping::many_to_many}},
      .outputs = {{"y", dtypes::real, "[.., H]", "centred rows"}},
      .attributes = {{"strength", 1.0, "how much of the mean is subtracted"},
                     {"out_dtype", std::string(), "element type of y; that of x where empty"}},
      .infer = infer,
      .reference = reference,
      .operations = [](const Problem& p) { return 2.0 * static_cast<double>(p.input(0).elements().value(p.maximum)); },
      .rounding_depth = [](const Problem& p) { return static_cast<double>(p.size(0, -1)) + 4; },
      .cases = cases,
  };
}

}  // namespace cermet::center_op
