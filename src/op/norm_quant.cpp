#include "op/norm_quant.hpp"

#include <algorithm>

#include "op/scale_operand.hpp"
#include "op/schema/operator.hpp"

namespace cermet {

std::vector<OperandSpec> norm_quant_inputs() {
  return {
      {"weight", dtypes::real, "[H]", "scale per element", Mapping::one_to_one, true},
      {"smooth", dtypes::real, "[H]", "factors of the normalized values before quantization", Mapping::one_to_one,
       true},
      {"scale",
       {DType::f32},
       "[] or [H]",
       "makes the quantization static: quantization step (div) or its reciprocal (mul)",
       Mapping::one_to_one,
       true},
      {"offset", {DType::f32}, "[] or [H]", "static quantization: added before rounding", Mapping::one_to_one, true}};
}

std::vector<AttributeSpec> norm_quant_attributes() {
  return {{"eps", 1e-6, "added to the mean square"},
          {"weight_offset", 0.0, "added to the weight"},
          {"granularity", std::string("token"), "dynamic: values that share a scale", {"token", "group"}},
          group_size_attribute(),
          asymmetric_attribute(),
          range_attribute(),
          quantize_mode_attribute(),
          quantized_type_attribute()};
}

std::vector<TensorType> infer_norm_quant(const Problem& p, NormQuantOperands operands) {
  expect_min_rank(p, 0, 1);
  for (std::size_t vector : {operands.weight, operands.smooth})
    if (p.has(vector)) expect_dims(p, vector, {dim_of(p, 0, -1)}, "the last one of x");
  expect_eps(p);
  const QuantizedFormat format = checked_quantized_format(p);
  std::vector<TensorType> outputs{{format.dtype, p.input(0).dims}};
  if (p.has(operands.scale)) {
    expect_scalar_or_channel(p, operands.scale);
    if (p.has(operands.offset)) expect_scalar_or_channel(p, operands.offset);
    if (format.asymmetric) bad_attribute(p, "asymmetric", "false with a given scale (use offset)");
    return outputs;
  }
  if (p.has(operands.offset))
    bad_operand(p, operands.offset, "nothing without a scale", p.input(operands.offset).to_string());
  outputs.push_back({DType::f32, scale_dims(p, 0, format)});
  if (format.asymmetric) outputs.push_back({DType::i32, outputs.back().dims});
  return outputs;
}

void norm_quant_row(const ReferenceCall& call, NormQuantOperands operands, std::span<const double> row_values,
                    std::int64_t row, const QuantizedViews& out, std::size_t scale_output) {
  double squares = 0;
  for (const double v : row_values) squares += v * v;
  const double norm = 1 / std::sqrt(squares / static_cast<double>(row_values.size()) + call.attributes.number("eps"));
  std::vector<float> values;
  double largest = 0;
  for (std::size_t i = 0; i < row_values.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    const double weight = call.has(operands.weight)
                              ? load(call.inputs[operands.weight], at) + call.attributes.number("weight_offset")
                              : 1;
    const double smooth = call.has(operands.smooth) ? load(call.inputs[operands.smooth], at) : 1;
    values.push_back(static_cast<float>(row_values[i] * norm * weight * smooth));
    largest = std::max(largest, std::abs(static_cast<double>(values.back())));
  }
  const QuantizedFormat format = quantized_format(call.attributes);
  if (!call.has(operands.scale)) {
    quantize_row(values, row, format, out);
    const auto groups = groups_in_row(format, static_cast<std::int64_t>(values.size()));
    if (format.asymmetric)  // a difference of two values
      for (std::int64_t g = 0; g < groups; ++g) note_magnitude(call, scale_output, row * groups + g, 2 * largest / 255);
    return;
  }
  const bool divide = call.attributes.text("mode") == "div";
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    const float scaled = static_value(values[i], *scalar_or_channel(call, operands.scale, at),
                                      scalar_or_channel(call, operands.offset, at), divide);
    store(out.quantized, row * static_cast<std::int64_t>(values.size()) + at, scaled);
  }
}

std::vector<Case> norm_quant_cases(std::size_t leading) {
  std::vector<Case> list;
  using enum DType;
  using Operand = std::optional<CaseOperand>;
  const auto add = [&](std::string name, DType t, Dims dims, const Operand& weight, const Operand& smooth,
                       const Operand& scale, const Operand& offset, Attributes attributes, const Fill& fill = normal(),
                       std::int64_t padding = 0) {
    std::vector<Operand> inputs;
    for (std::size_t i = 0; i < leading; ++i) inputs.push_back(CaseOperand{{i == 0 ? t : f32, dims}, fill, padding});
    for (const Operand& o : {weight, smooth, scale, offset}) inputs.push_back(o);
    list.push_back({std::move(name), std::move(inputs), std::move(attributes)});
  };
  const auto vector = [](DType t, std::int64_t h, Fill fill) { return CaseOperand{{t, {h}}, std::move(fill)}; };
  for (DType t : {f32, bf16, f16})
    for (std::string code : {"i8", "f8_e4m3", "f8_e5m2"}) {
      const auto name = [&](std::string kind) { return fmt::format("{}_{}_{}", kind, name_of(t), code); };
      add(name("token"), t, {3, 300}, vector(t, 300, normal(0.2, 1)), {}, {}, {}, {{"out_dtype", code}});
      add(name("block"), t, {3, 300}, vector(t, 300, normal(0.2, 1)), {}, {}, {},
          {{"out_dtype", code}, {"granularity", "group"}});
      add(name("static"), t, {3, 300}, vector(t, 300, normal(0.2, 1)), {}, CaseOperand{{f32, {}}, constant(0.02)},
          CaseOperand{{f32, {}}, constant(3)}, {{"out_dtype", code}});
      add(name("static_channel_mul"), t, {3, 300}, vector(t, 300, normal(0.2, 1)), {},
          vector(f32, 300, uniform(20, 40)), vector(f32, 300, integers(-9, 9)), {{"out_dtype", code}, {"mode", "mul"}});
    }
  for (std::int64_t h : {1, 7, 129, 2000})
    add(fmt::format("h{}", h), bf16, {2, h}, vector(bf16, h, normal(0.2, 1)), {}, {}, {}, {});
  add("asymmetric", f32, {3, 129}, vector(f32, 129, normal(0.2, 1)), {}, {}, {}, {{"asymmetric", true}});
  add("smooth_range", bf16, {3, 129}, vector(bf16, 129, normal(0.2, 1)), vector(f32, 129, uniform(0.5, 2)), {}, {},
      {{"range", "127.5"}});
  add("plain_static", f32, {3, 129}, {}, vector(f32, 129, uniform(0.5, 2)), CaseOperand{{f32, {1}}, constant(0.02)}, {},
      {});
  add("weight_offset", bf16, {2, 3, 64}, vector(f32, 64, normal(0.1)), {}, {}, {},
      {{"weight_offset", 1.0}, {"eps", 1e-3}}, normal(), 5);
  add("nothing", f32, {0, 16}, {}, {}, {}, {}, {});
  add("no_columns", f32, {2, 0}, {}, {}, {}, {}, {});
  add("zero_rows", f32, {2, 16}, {}, {}, {}, {}, {}, constant(0));
  add("nan_row", f32, {2, 5}, {}, {}, {}, {}, {}, values({1, 2, NAN, 4, 5, 6, 7, 8, 9, 10}));
  add("nan_row_e4m3", f32, {2, 5}, {}, {}, {}, {}, {{"out_dtype", "f8_e4m3"}},
      values({1, 2, NAN, 4, 5, 6, 7, 8, 9, 10}));
  return list;
}

}  // namespace cermet
