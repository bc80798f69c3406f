#include "op/operands.hpp"
#include "op/quantization.hpp"
#include "op/scale_operand.hpp"
#include "op/schema/operator.hpp"
#include "op/schema/reference.hpp"

namespace cermet::quantize_op {

namespace in = op::quantize;
namespace {

constexpr DTypeSet zero_point_types{DType::i8, DType::u8, DType::i16, DType::u16};

std::vector<TensorType> infer(const Problem& p) {
  expect_min_rank(p, in::x, 1);
  for (const std::size_t operand : {in::scale, in::offset, in::zero_point})
    if (p.has(operand)) expect_broadcasts(p, operand);
  const DType q = checked_quantized_format(p).dtype;
  if (p.has(in::zero_point)) expect_dtype(p, in::zero_point, q, "that of q");
  if (!p.attributes.flag("saturate") && !dtypes::fp8.contains(q)) bad_attribute(p, "saturate", "true for integers");
  return {{q, p.input(in::x).dims}};
}

void reference(const ReferenceCall& call) {
  const TensorView &x = call.inputs[in::x], &q = call.outputs[0];
  const bool divide = call.attributes.text("mode") == "div", saturates = call.attributes.flag("saturate");
  const auto parameter = [&](std::size_t operand, std::int64_t i) -> std::optional<float> {
    if (!call.has(operand)) return {};
    return static_cast<float>(load(call.inputs[operand], broadcast_index(call.inputs[operand], x.shape, i)));
  };
  for (std::int64_t i = 0; i < x.elements(); ++i) {
    const float value =
        static_value(static_cast<float>(load(x, i)), *parameter(in::scale, i), parameter(in::offset, i), divide);
    const std::optional<float> zero_point = parameter(in::zero_point, i);
    store(q, i, zero_point ? std::nearbyint(value) + *zero_point : saturates ? value : unsaturated(value, q.dtype));
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
          list.push_back({fmt::format("{}_{}_{}_{}", mode, code, name_of(t), channel ? "channel" : "tensor"),
                          {CaseOperand{{t, {5, 131}}, normal()}, CaseOperand{{f32, one}, uniform(typical / 2, typical)},
                           CaseOperand{{f32, one}, integers(-20, 20)}},
                          {{"mode", mode}, {"out_dtype", code}}});
        }
  for (DType q : {i8, u8, i16, u16}) {
    const std::string code(name_of(q));
    const auto add = [&](std::string name, Dims x, Dims scale, std::int64_t padding = 0) {
      list.push_back({fmt::format("zero_point_{}_{}", code, name),
                      {CaseOperand{{f32, x}, normal(50), padding}, CaseOperand{{f32, scale}, uniform(0.1, 0.7)},
                       std::nullopt, CaseOperand{{q, scale}, integers(-30, 140)}},
                      {{"out_dtype", code}}});
    };
    add("tensor", {3, 300}, {});
    add("axis", {2, 5, 33}, {5, 1}, 3);
    add("blocks", {2, 4, 3, 8}, {2, 1, 3, 8});
    list.push_back({"ties_" + code,
                    {CaseOperand{{f32, {8}}, values({0.5, 1.5, 2.5, -0.5, -1.5, 126.5, -300, 70000})},
                     CaseOperand{{f32, {}}, constant(1)}, std::nullopt, CaseOperand{{q, {1}}, constant(3)}},
                    {{"out_dtype", code}}});
    list.push_back({"no_zero_point_" + code,
                    {CaseOperand{{bf16, {3, 40}}, normal(90)}, CaseOperand{{f32, {3, 1}}, constant(0.5)}},
                    {{"out_dtype", code}}});
    list.push_back({"offset_" + code,
                    {CaseOperand{{f16, {3, 40}}, normal(90)}, CaseOperand{{f32, {40}}, constant(0.5)},
                     CaseOperand{{f32, {3, 1}}, integers(-9, 9)}, CaseOperand{{q, {}}, constant(7)}},
                    {{"out_dtype", code}, {"mode", "mul"}}});
    list.push_back({"nan_" + code,
                    {CaseOperand{{f32, {4}}, values({NAN, INFINITY, -INFINITY, 3e38})},
                     CaseOperand{{f32, {}}, constant(0.5)}, std::nullopt, CaseOperand{{q, {}}, constant(7)}},
                    {{"out_dtype", code}}});
  }
  list.push_back({"no_offset", {CaseOperand{{f32, {3, 40}}}, CaseOperand{{f32, {1}}, constant(0.01)}}});
  list.push_back({"half_steps",
                  {CaseOperand{{f32, {8}}, values({0.5, 1.5, 2.5, -0.5, -1.5, 126.5, 127.5, -128.5})},
                   CaseOperand{{f32, {}}, constant(1)}}});
  const Fill edges =
      values({0,     -0.0,     1e-9,      300, -300,        448,          464,    465,  57344, 61440, 1e30,
              -1e30, INFINITY, -INFINITY, NAN, 0.001953125, 0.0009765625, 0.0029, 1e-6, 17,    -19,   0.0146484375});
  for (std::string code : {"i8", "f8_e4m3", "f8_e5m2"})
    list.push_back({"edges_" + code,
                    {CaseOperand{{f32, {2, 44}}, edges}, CaseOperand{{f32, {}}, constant(1)}},
                    {{"out_dtype", code}}});
  for (std::string code : {"f8_e4m3", "f8_e5m2"})
    list.push_back({"unsaturated_" + code,
                    {CaseOperand{{f32, {2, 44}}, edges}, CaseOperand{{f32, {}}, constant(1)}},
                    {{"out_dtype", code}, {"saturate", false}}});
  list.push_back(
      {"zero_scale", {CaseOperand{{f32, {4}}, values({0, 1, -1, NAN})}, CaseOperand{{f32, {}}, constant(0)}}});
  list.push_back({"long_row", {CaseOperand{{bf16, {1, 5000}}}, CaseOperand{{f32, {5000}}, uniform(0.01, 0.02)}}});
  list.push_back(
      {"strided", {CaseOperand{{bf16, {2, 3, 33}}, normal(), 5}, CaseOperand{{f32, {33}}, uniform(0.01, 0.02)}}});
  list.push_back({"nothing", {CaseOperand{{f32, {0, 8}}}, CaseOperand{{f32, {8}}}}});
  return list;
}

}  // namespace

OpSpec define() {
  return {
      .category = "Quantization",
      .summary = "Quantizes with given scales",
      .semantics =
          "mode div: q = round(x / scale + offset); mul: q = round(x * scale + offset), each operation in float32. "
          "With zero_point, q = "
          "round(x / scale) + zero_point. Scale, offset and zero point broadcast to x: one number, one per element of "
          "the last dimension, or of any other. "
          "Integers round half to even and saturate; NaN, which they cannot hold, counts as 0 when it is stored. fp8 "
          "rounds to nearest even and saturates "
          "finite "
          "values, or with saturate false gives what the format has beyond its range: NaN in e4m3, infinity in e5m2; "
          "NaN stays NaN, and infinity becomes NaN "
          "in "
          "e4m3. Results are exact.",
      .inputs = {{"x", dtypes::real, "[.., K]", "values"},
                 {"scale", {DType::f32}, "broadcasts to x", "quantization step (div) or its reciprocal (mul)"},
                 {"offset", {DType::f32}, "broadcasts to x", "added before rounding", Mapping::one_to_one, true},
                 {"zero_point", zero_point_types, "broadcasts to x", "added after rounding; of the type of q",
                  Mapping::one_to_one, true}},
      .outputs = {{"q", quantized_types | zero_point_types, "[.., K]", "quantized values"}},
      .attributes = {quantize_mode_attribute(),
                     {"out_dtype",
                      std::string("i8"),
                      "element type of the quantized values",
                      {"i8", "u8", "i16", "u16", "f8_e4m3", "f8_e5m2"}},
                     {"saturate", true, "fp8 only: values beyond the largest become that one"}},
      .infer = infer,
      .reference = reference,
      .operations =
          [](const Problem& p) { return 3 * static_cast<double>(p.input(in::x).elements().value(p.maximum)); },
      .cases = cases,
  };
}

}  // namespace cermet::quantize_op
