#include "op/norm_quant.hpp"
#include "op/schema/operator.hpp"

namespace cermet::add_rms_norm_quant_op {
namespace {

constexpr NormQuantOperands operands(2);

std::vector<TensorType> infer(const Problem& p) {
  expect_min_rank(p, 0, 1);
  expect_dims(p, 1, p.input(0).dims, "those of x");
  std::vector<TensorType> outputs = infer_norm_quant(p, operands);
  outputs.insert(outputs.begin() + 1, p.input(1));
  return outputs;
}

void reference(const ReferenceCall& call) {
  const TensorView& x = call.inputs[0];
  const bool round_sum = call.attributes.flag("round_sum");
  const std::int64_t length = x.shape.back(), rows = Rows(x).count();
  QuantizedViews out{call.outputs[0], {}, {}};
  if (call.outputs.size() > 2) out.scale = call.outputs[2];
  if (call.outputs.size() > 3) out.zero_point = call.outputs[3];
  std::vector<double> values(static_cast<std::size_t>(length));
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t i = 0; i < length; ++i) {
      double& sum = values[static_cast<std::size_t>(i)];
      sum = residual_sum(call, row * length + i, round_sum);
      store(call.outputs[1], row * length + i, sum);
    }
    norm_quant_row(call, operands, values, row, out, 2);
  }
}

std::vector<Case> cases() {
  std::vector<Case> list = norm_quant_cases(2);
  for (DType residual : {DType::f32, DType::bf16, DType::f16})
    for (std::string dtype : {"i8", "f8_e4m3"})
      list.push_back({fmt::format("round_sum_{}_{}", name_of(residual), dtype),
                      {CaseOperand{{DType::f32, {3, 300}}}, CaseOperand{{residual, {3, 300}}},
                       CaseOperand{{DType::bf16, {300}}, normal(0.2, 1)}},
                      {{"round_sum", true}, {"out_dtype", dtype}}});
  return list;
}

}  // namespace

OpSpec define() {
  std::vector<OperandSpec> inputs{{"x", dtypes::real, "[.., H]", "a layer's output", Mapping::many_to_many},
                                  {"residual", dtypes::real, "[.., H]", "the residual stream", Mapping::many_to_many}};
  for (const OperandSpec& shared : norm_quant_inputs()) inputs.push_back(shared);
  return {
      .category = "Normalization",
      .summary = "Residual addition and root-mean-square normalization with an int8 or fp8 result",
      .semantics =
          "sum = x + residual, stored in the residual's type; the float32 sum, with round_sum the stored one, is "
          "normalized and quantized as in rms_norm_quant. In place works: sum may share the residual's memory. A "
          "quantized value may differ by one step.",
      .inputs = std::move(inputs),
      .outputs = {{"q", quantized_types, "[.., H]", "quantized values"},
                  {"sum", dtypes::real, "[.., H]", "x + residual, in the residual's type"},
                  {"scale", {DType::f32}, "[..] or [.., groups]", "quantization step, where dynamic"},
                  {"zero_point", {DType::i32}, "as scale", "quantized value of 0, where asymmetric"}},
      .attributes =
          [] {
            auto attributes = norm_quant_attributes();
            attributes.push_back(round_sum_attribute());
            return attributes;
          }(),
      .infer = infer,
      .reference = reference,
      .operations = [](const Problem& p) { return 9 * static_cast<double>(p.input(0).elements().value(p.maximum)); },
      .rounding_depth = [](const Problem& p) { return norm_rounding_depth(p, operands.weight) + 4; },
      .integer_slack = 1,
      .cases = cases,
      .in_place = {-1, 1},
  };
}

}  // namespace cermet::add_rms_norm_quant_op
