#include "op/gated.hpp"
#include "op/operands.hpp"
#include "op/pointwise_math.hpp"
#include "op/quantization.hpp"
#include "op/scale_operand.hpp"
#include "op/schema/operator.hpp"
#include "op/schema/reference.hpp"

namespace cermet::silu_and_mul_quant_op {

namespace in = op::silu_and_mul_quant;
namespace {

/// The operand is one number, where that is allowed, or has the features of the result.
void expect_features(const Problem& p, std::size_t operand, const Dim& features, bool scalar_allowed) {
  if (!p.has(operand)) return;
  const Dims& dims = p.input(operand).dims;
  if (scalar_allowed && (dims.empty() || dims == Dims{1})) return;
  expect_dims(p, operand, {features}, "half the last one of x");
}

std::vector<TensorType> infer(const Problem& p) {
  expect_min_rank(p, in::x, 1);
  Dims dims = p.input(in::x).dims;
  if (!dims.back().is_constant() || dims.back().constant() % 2 != 0)
    bad_operand(p, in::x, "an even, constant last dimension", p.input(in::x).to_string());
  dims.back() = dims.back().constant() / 2;
  const QuantizedFormat format = checked_quantized_format(p);
  expect_features(p, in::smooth, dims.back(), false);
  expect_features(p, in::scale, dims.back(), true);
  expect_features(p, in::offset, dims.back(), true);
  std::vector<TensorType> outputs{{format.dtype, dims}};
  if (p.has(in::scale)) {
    if (format.asymmetric) bad_attribute(p, "asymmetric", "false with a given scale (use offset)");
    return outputs;
  }
  if (p.has(in::offset)) bad_operand(p, in::offset, "nothing without a scale", p.input(in::offset).to_string());
  Dims scales(dims.begin(), dims.end() - 1);
  if (format.group != 0) scales.push_back(groups_in_row(format, dims.back().constant()));
  outputs.push_back({DType::f32, scales});
  if (format.asymmetric) outputs.push_back({DType::i32, scales});
  return outputs;
}

void reference(const ReferenceCall& call) {
  const TensorView &x = call.inputs[in::x], &q = call.outputs[0];
  const std::int64_t features = q.shape.back(), rows = Rows(q).count();
  const GatedLayout layout(call.attributes, features);
  const QuantizedFormat format = quantized_format(call.attributes);
  const bool divide = call.attributes.text("mode") == "div";
  QuantizedViews out{q, {}, {}};
  if (call.outputs.size() > 1) out.scale = call.outputs[1];
  if (call.outputs.size() > 2) out.zero_point = call.outputs[2];
  std::vector<float> values(static_cast<std::size_t>(features));
  for (std::int64_t row = 0; row < rows; ++row) {
    double largest = 0;
    for (std::int64_t i = 0; i < features; ++i) {
      const double gate = load(x, row * 2 * features + layout.gate(i)), up = load(x, row * 2 * features + layout.up(i));
      const double smooth = call.has(in::smooth) ? load(call.inputs[in::smooth], i) : 1;
      const auto value = static_cast<float>(gate * sigmoid(gate) * up * smooth);
      values[static_cast<std::size_t>(i)] = value;
      largest = std::max(largest, static_cast<double>(std::abs(value)));
      if (call.has(in::scale))
        store(q, row * features + i,
              static_value(value, *scalar_or_channel(call, in::scale, i), scalar_or_channel(call, in::offset, i),
                           divide));
    }
    if (call.has(in::scale)) continue;
    quantize_row(values, row, format, out);
    const std::int64_t groups = groups_in_row(format, features);
    if (format.asymmetric)  // a difference of two values
      for (std::int64_t g = 0; g < groups; ++g) note_magnitude(call, 1, row * groups + g, 2 * largest / 255);
  }
}

std::vector<Case> cases() {
  std::vector<Case> list;
  using enum DType;
  using Operand = std::optional<CaseOperand>;
  const auto add = [&](std::string name, CaseOperand x, Operand smooth, Operand scale, Operand offset,
                       Attributes attributes) {
    list.push_back({std::move(name), {std::move(x), smooth, scale, offset}, std::move(attributes)});
  };
  const auto vector = [](std::int64_t n, Fill fill) { return CaseOperand{{f32, {n}}, std::move(fill)}; };
  for (DType t : {f32, bf16, f16})
    for (std::string code : {"i8", "f8_e4m3", "f8_e5m2"}) {
      const std::string name = fmt::format("{}_{}", name_of(t), code);
      add("token_" + name, {{t, {3, 600}}, normal(2)}, {}, {}, {}, {{"out_dtype", code}});
      add("block_" + name, {{t, {3, 600}}, normal(2)}, {}, {}, {}, {{"out_dtype", code}, {"granularity", "group"}});
      add("static_" + name, {{t, {3, 600}}, normal(2)}, {}, CaseOperand{{f32, {}}, constant(0.02)},
          vector(300, integers(-9, 9)), {{"out_dtype", code}});
    }
  for (std::int64_t f : {1, 7, 129, 2000}) add(fmt::format("f{}", f), {{bf16, {2, 2 * f}}, normal(2)}, {}, {}, {}, {});
  for (std::string gate : {"first", "second"})
    for (bool interleaved : {false, true})
      add(gate + (interleaved ? "_interleaved" : "_halves"), {{bf16, {2, 2, 272}}, normal(2), 5},
          vector(136, uniform(0.5, 2)), {}, {}, {{"gate", gate}, {"interleaved", interleaved}});
  add("asymmetric", {{f32, {3, 258}}, normal(2)}, {}, {}, {}, {{"asymmetric", true}});
  add("range", {{bf16, {3, 258}}, normal(2)}, {}, {}, {}, {{"range", "127.5"}});
  add("static_mul", {{bf16, {3, 258}}, normal(2)}, vector(129, uniform(0.5, 2)), vector(129, uniform(20, 40)), {},
      {{"mode", "mul"}});
  add("long_rows", {{bf16, {2, 28672}}, normal(2)}, {}, {}, {}, {});
  add("no_rows", {{f32, {0, 16}}}, {}, {}, {}, {});
  add("no_features", {{f32, {2, 0}}}, {}, {}, {}, {});
  add("zeros", {{f32, {2, 16}}, constant(0)}, {}, {}, {}, {});
  add("nan_row", {{f32, {2, 6}}, values({1, 2, NAN, 4, 5, 6, 7, 8, 9, 10, 11, 12})}, {}, {}, {}, {});
  return list;
}

}  // namespace

OpSpec define() {
  return {
      .category = "Activation",
      .summary = "Gated SiLU (SwiGLU) with an int8 or fp8 result",
      .semantics =
          "silu_and_mul, kept in float32, times smooth, then dynamic_quant per token or per group (granularity; "
          "group_size 128 is the block form) where "
          "no scale is given, else quantize with the given scale and offset. A quantized value may differ by one step, "
          "because exp does by an ulp.",
      .inputs = {{"x", dtypes::real, "[.., 2F]", "gate and linear half of each row"},
                 {"smooth", dtypes::real, "[F]", "factors of the gated values before quantization", Mapping::one_to_one,
                  true},
                 {"scale",
                  {DType::f32},
                  "[] or [F]",
                  "makes the quantization static: quantization step (div) or its reciprocal (mul)",
                  Mapping::one_to_one,
                  true},
                 {"offset",
                  {DType::f32},
                  "[] or [F]",
                  "static quantization: added before rounding",
                  Mapping::one_to_one,
                  true}},
      .outputs = {{"q", quantized_types, "[.., F]", "quantized values"},
                  {"scale", {DType::f32}, "[..] or [.., groups]", "quantization step, where dynamic"},
                  {"zero_point", {DType::i32}, "as scale", "quantized value of 0, where asymmetric"}},
      .attributes = {gate_attribute(),
                     interleaved_attribute(),
                     {"granularity", std::string("token"), "dynamic: values that share a scale", {"token", "group"}},
                     group_size_attribute(),
                     asymmetric_attribute(),
                     range_attribute(),
                     quantize_mode_attribute(),
                     quantized_type_attribute()},
      .infer = infer,
      .reference = reference,
      .operations = [](const Problem& p) { return 9 * static_cast<double>(p.outputs[0].elements().value(p.maximum)); },
      .rounding_depth = [](const Problem&) { return 20.0; },
      .integer_slack = 1,
      .cases = cases,
  };
}

}  // namespace cermet::silu_and_mul_quant_op
