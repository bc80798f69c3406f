#include "op/operands.hpp"
#include "op/pointwise_math.hpp"
#include "op/quantization.hpp"
#include "op/scale_operand.hpp"
#include "op/schema/operator.hpp"
#include "op/schema/reference.hpp"

namespace cermet::dequant_swiglu_quant_op {

namespace in = op::dequant_swiglu_quant;
namespace {

bool is_static(const Attributes& attributes) { return attributes.text("quantization") == "static"; }

void expect_features(const Problem& p, std::size_t operand, const Dim& features, bool scalar_allowed) {
  const TensorType& type = p.input(operand);
  if (scalar_allowed && (type.rank() == 0 || type.dims == Dims{1})) return;
  expect_dims(p, operand, {features}, "half the last one of x");
}

/// One number, one for each column, or one for each element.
void expect_weight_scale(const Problem& p) {
  const TensorType &scale = p.input(in::weight_scale), &x = p.input(in::x);
  const bool is_one = scale.rank() == 0 || scale.dims == Dims{1};
  if (is_one || scale.dims == Dims{x.dims.back()} || scale.dims == x.dims) return;
  bad_operand(p, in::weight_scale,
              fmt::format("one number, [{}] (the last dimension of x) or {} (its dimensions)",
                          x.dims.back().to_string(), to_string(x.dims)),
              scale.to_string());
}

std::vector<TensorType> infer(const Problem& p) {
  expect_min_rank(p, in::x, 1);
  Dims dims = p.input(in::x).dims;
  if (!dims.back().is_constant() || dims.back().constant() % 2 != 0)
    bad_operand(p, in::x, "an even, constant last dimension", p.input(in::x).to_string());
  const Dims rows(dims.begin(), dims.end() - 1);
  dims.back() = dims.back().constant() / 2;
  expect_weight_scale(p);
  if (p.has(in::act_scale)) expect_dims(p, in::act_scale, rows, "those of x without the last");
  if (p.has(in::bias)) expect_dims(p, in::bias, {dim_of(p, in::x, -1)}, "the last one of x");
  if (p.has(in::bias) && p.input(in::bias).dtype == DType::i32)
    expect_dtype(p, in::x, DType::i32, "that of an int32 bias");
  const QuantizedFormat format = checked_quantized_format(p);
  const bool fixed = is_static(p.attributes);
  if (p.has(in::smooth)) expect_features(p, in::smooth, dims.back(), fixed);
  if (p.has(in::offset)) expect_features(p, in::offset, dims.back(), true);
  if (fixed && !p.has(in::smooth))
    bad_attribute(p, "quantization", "\"dynamic\" without smooth, which is the static scale");
  if (!fixed && p.has(in::offset))
    bad_operand(p, in::offset, "nothing with dynamic quantization", p.input(in::offset).to_string());
  std::vector<TensorType> outputs{{format.dtype, dims}};
  if (!fixed) outputs.push_back({DType::f32, rows});
  return outputs;
}

struct Term {
  double value, magnitude;
};

/// Element i of row `row`, dequantized.
Term dequantized(const ReferenceCall& call, std::int64_t row, std::int64_t i) {
  const TensorView &x = call.inputs[in::x], &weight_scale = call.inputs[in::weight_scale],
                   &bias = call.inputs[in::bias];
  double accumulator = load(x, row * x.shape.back() + i);
  const std::int64_t at = weight_scale.elements() == 1    ? 0
                          : weight_scale.shape.rank() > 1 ? row * x.shape.back() + i
                                                          : i;
  const double scale = load(weight_scale, at) * (call.has(in::act_scale) ? load(call.inputs[in::act_scale], row) : 1.0);
  if (!call.has(in::bias)) return {accumulator * scale, std::abs(accumulator * scale)};
  if (bias.dtype == DType::i32) {
    accumulator = static_cast<std::int32_t>(static_cast<std::uint32_t>(load_index(x, row * x.shape.back() + i)) +
                                            static_cast<std::uint32_t>(load_index(bias, i)));
    return {accumulator * scale, std::abs(accumulator * scale)};
  }
  return {accumulator * scale + load(bias, i), std::abs(accumulator * scale) + std::abs(load(bias, i))};
}

void reference(const ReferenceCall& call) {
  const TensorView& q = call.outputs[0];
  const std::int64_t features = q.shape.back(), rows = Rows(q).count();
  const bool left = call.attributes.text("activate") == "left", fixed = is_static(call.attributes);
  const QuantizedFormat format = quantized_format(call.attributes);
  std::vector<float> values(static_cast<std::size_t>(features));
  for (std::int64_t row = 0; row < rows; ++row) {
    double largest_term = 0;
    for (std::int64_t i = 0; i < features; ++i) {
      const Term gate = dequantized(call, row, left ? i : features + i),
                 up = dequantized(call, row, left ? features + i : i);
      const float smooth = scalar_or_channel(call, in::smooth, i).value_or(1.0f);
      const double silu = gate.value * sigmoid(gate.value);
      float& value = values[static_cast<std::size_t>(i)];
      value = static_cast<float>(silu * up.value);
      if (fixed)
        store(q, row * features + i, static_value(value, smooth, scalar_or_channel(call, in::offset, i), false));
      value *= smooth;
      // silu changes by at most 1.1 times the change of its argument.
      largest_term = std::max(
          largest_term, std::abs(smooth) * (1.1 * gate.magnitude * std::abs(up.value) + std::abs(silu) * up.magnitude));
    }
    if (fixed) continue;
    quantize_row(values, row, format, {q, call.outputs[1], {}});
    note_magnitude(call, 1, row, largest_term / format.limit);
  }
}

std::vector<Case> cases() {
  std::vector<Case> list;
  using enum DType;
  using Operand = std::optional<CaseOperand>;
  const auto add = [&](std::string name, Dims dims, Operand weight_scale, Operand bias, Operand smooth, Operand offset,
                       Attributes attributes, std::int64_t padding = 0) {
    const Dims rows(dims.begin(), dims.end() - 1);
    list.push_back({std::move(name),
                    {CaseOperand{{i32, dims}, integers(-3000, 3000), padding}, weight_scale,
                     CaseOperand{{f32, rows}, uniform(0.01, 0.05)}, bias, smooth, offset},
                    std::move(attributes)});
  };
  const auto scales = [](std::int64_t n) { return CaseOperand{{f32, {n}}, uniform(0.02, 0.06)}; };
  for (std::string activate : {"left", "right"})
    for (std::string code : {"i8", "f8_e4m3", "f8_e5m2"}) {
      const std::string name = activate + "_" + code;
      add("dynamic_" + name, {4, 262}, scales(262), {}, {}, {}, {{"activate", activate}, {"out_dtype", code}});
      add("static_" + name, {4, 262}, scales(262), {}, CaseOperand{{f32, {131}}, uniform(5, 20)},
          CaseOperand{{f32, {131}}, integers(-9, 9)},
          {{"activate", activate}, {"out_dtype", code}, {"quantization", "static"}});
    }
  for (DType t : {i32, f32, bf16, f16})
    add(fmt::format("bias_{}", name_of(t)), {3, 80}, scales(80),
        CaseOperand{{t, {80}}, t == i32 ? integers(-500, 500) : normal()}, CaseOperand{{f32, {40}}, uniform(0.5, 2)},
        {}, {});
  add("one_scale", {3, 80}, CaseOperand{{f32, {}}, constant(0.03)}, {}, CaseOperand{{f32, {1}}, constant(10)},
      CaseOperand{{f32, {}}, constant(-3)}, {{"quantization", "static"}});
  add("range", {3, 1200}, scales(1200), {}, {}, {}, {{"range", "127.5"}});
  add("long", {2, 16384}, scales(16384), {}, {}, {}, {});
  add("longer", {1, 28672}, scales(28672), {}, {}, {}, {});
  add("strided", {2, 2, 34}, scales(34), {}, {}, {}, {}, 5);
  add("no_rows", {0, 8}, scales(8), {}, {}, {}, {});
  add("no_features", {3, 0}, scales(0), {}, {}, {}, {});
  const auto real = [&](std::string name, DType t, Dims dims, Dims scale, Operand act_scale, Operand bias,
                        Attributes attributes, std::int64_t padding = 0) {
    list.push_back(
        {std::move(name),
         {CaseOperand{{t, dims}, normal(), padding}, CaseOperand{{f32, std::move(scale)}, uniform(0.5, 2), padding},
          std::move(act_scale), std::move(bias)},
         std::move(attributes)});
  };
  for (DType t : {bf16, f16, f32}) {
    real(fmt::format("elements_{}", name_of(t)), t, {5, 264}, {5, 264}, {}, {}, {});
    real(fmt::format("columns_{}", name_of(t)), t, {5, 134}, {134}, CaseOperand{{f32, {5}}, uniform(0.5, 2)},
         CaseOperand{{bf16, {134}}, normal()}, {{"activate", "right"}, {"out_dtype", "f8_e4m3"}});
  }
  real("elements_strided", bf16, {2, 3, 34}, {2, 3, 34}, CaseOperand{{f32, {2, 3}}, uniform(0.5, 2)}, {}, {}, 5);
  real("elements_long", bf16, {3, 8192}, {3, 8192}, {}, {}, {});
  real("elements_no_rows", bf16, {0, 8}, {0, 8}, {}, {}, {});
  list.push_back(
      {"no_act_scale",
       {CaseOperand{{i32, {3, 80}}, integers(-3000, 3000)}, CaseOperand{{f32, {3, 80}}, uniform(0.0005, 0.002)}}});
  list.push_back({"zeros", {CaseOperand{{i32, {2, 8}}, constant(0)}, scales(8), CaseOperand{{f32, {2}}, constant(1)}}});
  list.push_back(
      {"nan_scale",
       {CaseOperand{{i32, {3, 8}}, integers(-300, 300)}, scales(8), CaseOperand{{f32, {3}}, values({0.1, NAN, 0.2})}}});
  return list;
}

}  // namespace

OpSpec define() {
  return {
      .category = "Quantization",
      .summary =
          "Dequantizes int32 accumulators, or scales real products, applies SwiGLU and quantizes the result, in one "
          "pass",
      .semantics =
          "d = x * (weight_scale * act_scale) + bias (an int32 bias is added to an int32 x before, wrapping; an "
          "act_scale that is not given is 1); y = "
          "silu(left half) * right half of each row of d, or left "
          "* "
          "silu(right) with activate = \"right\"; all in float32. Dynamic: v = y * smooth, one scale per row as in "
          "dynamic_quant. Static: q = round(y * smooth "
          "+ offset). "
          "A quantized value may differ by one step, because exp does by an ulp.",
      .inputs =
          {{"x", dtypes::real | DTypeSet{DType::i32}, "[.., 2F]",
            "accumulators of an int8 product, or rows that other scales have left"},
           {"weight_scale", {DType::f32}, "[], [2F] or [.., 2F]", "scale of the weights, or of each element"},
           {"act_scale", {DType::f32}, "[..]", "scale of each row", Mapping::one_to_many, true},
           {"bias", dtypes::real | DTypeSet{DType::i32}, "[2F]", "added to d, or to x where it is int32",
            Mapping::one_to_one, true},
           {"smooth", {DType::f32}, "[F]; static also []", "factors before quantization", Mapping::one_to_one, true},
           {"offset", {DType::f32}, "[] or [F]", "static: added before rounding", Mapping::one_to_one, true}},
      .outputs = {{"q", quantized_types, "[.., F]", "quantized values"},
                  {"scale", {DType::f32}, "[..]", "quantization step, where dynamic"}},
      .attributes =
          {{"activate", std::string("left"), "the half that goes through silu", {"left", "right"}},
           {"quantization", std::string("dynamic"), "whether scales are computed or given", {"dynamic", "static"}},
           range_attribute(),
           quantized_type_attribute()},
      .infer = infer,
      .reference = reference,
      .operations = [](const Problem& p) { return 16 * static_cast<double>(p.outputs[0].elements().value(p.maximum)); },
      .rounding_depth = [](const Problem&) { return 20.0; },
      .integer_slack = 1,
      .cases = cases,
  };
}

}  // namespace cermet::dequant_swiglu_quant_op
