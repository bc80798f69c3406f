#include "op/operator.hpp"
#include "op/quantization.hpp"
#include "op/reference.hpp"

namespace cermet {
namespace {

constexpr std::size_t x_operand = 0, scale_operand = 1, offset_operand = 2;

std::vector<TensorType> infer(const Problem& p) {
  expect_min_rank(p, x_operand, 1);
  expect_scalar_or_channel(p, scale_operand);
  if (p.has(offset_operand)) expect_scalar_or_channel(p, offset_operand);
  return {{checked_code_format(p).dtype, p.input(x_operand).dims}};
}

void reference(const ReferenceCall& call) {
  const TensorView& x = call.inputs[x_operand];
  const bool divide = call.attributes.text("mode") == "div";
  for (std::int64_t i = 0; i < x.elements(); ++i) {
    const std::int64_t channel = i % x.shape.back();
    const float scale = *scalar_or_channel(call, scale_operand, channel);
    store(call.outputs[0], i, static_value(static_cast<float>(load(x, i)), scale, scalar_or_channel(call, offset_operand, channel), divide));
  }
}

std::vector<Case> cases() {
  std::vector<Case> list;
  using enum DType;
  for (std::string mode : {"div", "mul"})
    for (std::string code : {"i8", "f8_e4m3", "f8_e5m2"})
      for (DType t : {f32, bf16, f16})
        for (bool channel : {false, true}) {
          const Dims one = channel ? Dims{131} : Dims{};
          const double typical = mode == "div" ? 0.02 : 50;
          list.push_back(
              {fmt::format("{}_{}_{}_{}", mode, code, name_of(t), channel ? "channel" : "tensor"),
               {CaseOperand{{t, {5, 131}}, normal()}, CaseOperand{{f32, one}, uniform(typical / 2, typical)}, CaseOperand{{f32, one}, integers(-20, 20)}},
               {{"mode", mode}, {"out_dtype", code}}});
        }
  list.push_back({"no_offset", {CaseOperand{{f32, {3, 40}}}, CaseOperand{{f32, {1}}, constant(0.01)}}});
  list.push_back({"half_steps", {CaseOperand{{f32, {8}}, values({0.5, 1.5, 2.5, -0.5, -1.5, 126.5, 127.5, -128.5})}, CaseOperand{{f32, {}}, constant(1)}}});
  const Fill edges = values({0,     -0.0,     1e-9,      300, -300,        448,          464,    465,  57344, 61440, 1e30,
                             -1e30, INFINITY, -INFINITY, NAN, 0.001953125, 0.0009765625, 0.0029, 1e-6, 17,    -19,   0.0146484375});
  for (std::string code : {"i8", "f8_e4m3", "f8_e5m2"})
    list.push_back({"edges_" + code, {CaseOperand{{f32, {2, 44}}, edges}, CaseOperand{{f32, {}}, constant(1)}}, {{"out_dtype", code}}});
  list.push_back({"zero_scale", {CaseOperand{{f32, {4}}, values({0, 1, -1, NAN})}, CaseOperand{{f32, {}}, constant(0)}}});
  list.push_back({"long_row", {CaseOperand{{bf16, {1, 5000}}}, CaseOperand{{f32, {5000}}, uniform(0.01, 0.02)}}});
  list.push_back({"strided", {CaseOperand{{bf16, {2, 3, 33}}, normal(), 5}, CaseOperand{{f32, {33}}, uniform(0.01, 0.02)}}});
  list.push_back({"nothing", {CaseOperand{{f32, {0, 8}}}, CaseOperand{{f32, {8}}}}});
  return list;
}

}  // namespace

OpSpec define_quantize() {
  return {
      .category = "Quantization",
      .summary = "Quantizes with given scales",
      .semantics =
          "mode div: q = round(x / scale + offset); mul: q = round(x * scale + offset), each operation in float32, scale and offset per tensor (one number) or "
          "per "
          "element of the last dimension. int8 rounds half to even and saturates to [-128, 127]; NaN, which int8 cannot hold, becomes 0. fp8 rounds to nearest "
          "even "
          "and saturates finite values; NaN stays NaN, and infinity becomes NaN in e4m3. Results are exact.",
      .inputs = {{"x", dtypes::real, "[.., K]", "values"},
                 {"scale", {DType::f32}, "[] or [K]", "quantization step (div) or its reciprocal (mul)"},
                 {"offset", {DType::f32}, "[] or [K]", "added before rounding", Mapping::one_to_one, true}},
      .outputs = {{"q", code_types, "[.., K]", "quantized values"}},
      .attributes = {quantize_mode_attribute(), code_type_attribute()},
      .infer = infer,
      .reference = reference,
      .operations = [](const Problem& p) { return 3 * static_cast<double>(p.input(x_operand).elements().value(p.maximum)); },
      .cases = cases,
  };
}

}  // namespace cermet
