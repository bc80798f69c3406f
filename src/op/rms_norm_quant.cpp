#include "op/norm_quant.hpp"
#include "op/schema/operator.hpp"

namespace cermet::rms_norm_quant_op {
namespace {

constexpr NormQuantOperands operands(1);

void reference(const ReferenceCall& call) {
  const TensorView& x = call.inputs[0];
  const std::int64_t length = x.shape.back(), rows = Rows(x).count();
  QuantizedViews out{call.outputs[0], {}, {}};
  if (call.outputs.size() > 1) out.scale = call.outputs[1];
  if (call.outputs.size() > 2) out.zero_point = call.outputs[2];
  std::vector<double> values(static_cast<std::size_t>(length));
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t i = 0; i < length; ++i) values[static_cast<std::size_t>(i)] = load(x, row * length + i);
    norm_quant_row(call, operands, values, row, out, 1);
  }
}

}  // namespace

OpSpec define() {
  std::vector<OperandSpec> inputs{{"x", dtypes::real, "[.., H]", "rows to normalize", Mapping::many_to_many}};
  for (const OperandSpec& shared : norm_quant_inputs()) inputs.push_back(shared);
  return {
      .category = "Normalization",
      .summary = "Root-mean-square normalization with an int8 or fp8 result",
      .semantics =
          "rms_norm over the last dimension, kept in float32, times smooth, then dynamic_quant per token or per group "
          "(granularity; group_size 128 is the "
          "block form) "
          "where no scale is given, else quantize with the given scale and offset. Because the order of the float32 "
          "sums is free, a quantized value may differ "
          "by one "
          "step.",
      .inputs = std::move(inputs),
      .outputs = {{"q", quantized_types, "[.., H]", "quantized values"},
                  {"scale", {DType::f32}, "[..] or [.., groups]", "quantization step, where dynamic"},
                  {"zero_point", {DType::i32}, "as scale", "quantized value of 0, where asymmetric"}},
      .attributes = norm_quant_attributes(),
      .infer = [](const Problem& p) { return infer_norm_quant(p, operands); },
      .reference = reference,
      .operations = [](const Problem& p) { return 8 * static_cast<double>(p.input(0).elements().value(p.maximum)); },
      .rounding_depth = [](const Problem& p) { return norm_rounding_depth(p, operands.weight) + 4; },
      .integer_slack = 1,
      .cases = [] { return norm_quant_cases(1); },
  };
}

}  // namespace cermet::rms_norm_quant_op
