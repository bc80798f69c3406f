#include "base/checked.hpp"
#include "op/operands.hpp"
#include "op/quantization.hpp"
#include "op/scale_operand.hpp"
#include "op/schema/operator.hpp"
#include "op/schema/reference.hpp"

namespace cermet::dequantize_op {

namespace in = op::dequantize;
namespace {

constexpr DTypeSet whole_quantized{DType::i8, DType::u8, DType::i16, DType::u16};

void check_parameter(const Problem& p, std::size_t operand) {
  const std::string& granularity = p.attributes.text("granularity");
  const Dims& q = p.input(in::q).dims;
  const Dims rows(q.begin(), q.end() - 1);
  if (granularity == "tensor") {
    if (p.input(operand).elements() != Dim(1))
      bad_operand(p, operand, "one number (granularity tensor)", p.input(operand).to_string());
  } else if (granularity == "broadcast") {
    expect_broadcasts(p, operand);
  } else if (granularity == "channel") {
    expect_dims(p, operand, {q.back()}, "the last one of q");
  } else if (granularity == "token") {
    expect_dims(p, operand, rows, "those of q without the last");
  } else {
    QuantizedFormat format;
    format.group = p.attributes.integer("group_size");
    if (format.group <= 0) bad_attribute(p, "group_size", "a positive number");
    expect_dims(p, operand, scale_dims(p, in::q, format),
                "those of q with the last one replaced by its number of groups");
  }
}

std::vector<TensorType> infer(const Problem& p) {
  expect_min_rank(p, in::q, 1);
  const bool narrow_offset = p.has(in::offset) && whole_quantized.contains(p.input(in::offset).dtype);
  if (p.attributes.text("granularity") == "group" &&
      (!(quantized_types | DTypeSet{DType::i32}).contains(p.input(in::q).dtype) || narrow_offset))
    bad_attribute(p, "granularity", "\"broadcast\" for operands of these types");
  check_parameter(p, in::scale);
  if (p.has(in::offset)) check_parameter(p, in::offset);
  return {{dtype_attribute(p, "out_dtype", DType::f32, dtypes::real), p.input(in::q).dims}};
}

/// Dense index of the scale of element i of q.
std::int64_t parameter_index(const ReferenceCall& call, std::size_t operand, std::int64_t i) {
  const std::string& granularity = call.attributes.text("granularity");
  const std::int64_t length = call.inputs[in::q].shape.back();
  if (granularity == "tensor") return 0;
  if (granularity == "broadcast") return broadcast_index(call.inputs[operand], call.inputs[in::q].shape, i);
  if (granularity == "channel") return i % length;
  if (granularity == "token") return i / length;
  const std::int64_t group = call.attributes.integer("group_size");
  return i / length * div_up(length, group) + i % length / group;
}

void reference(const ReferenceCall& call) {
  const TensorView& q = call.inputs[in::q];
  const bool multiply = call.attributes.text("mode") == "div";
  for (std::int64_t i = 0; i < q.elements(); ++i) {
    const auto parameter = [&](std::size_t operand) {
      return load(call.inputs[operand], parameter_index(call, operand, i));
    };
    const double code = load(q, i), scale = parameter(in::scale),
                 offset = call.has(in::offset) ? parameter(in::offset) : 0;
    store(call.outputs[0], i, multiply ? (code - offset) * scale : (code - offset) / scale);
    const double terms = std::abs(code) + std::abs(offset);
    note_magnitude(call, 0, i, multiply ? terms * std::abs(scale) : terms / std::abs(scale));
  }
}

std::vector<Case> cases() {
  std::vector<Case> list;
  using enum DType;
  const auto quantized = [](DType t) {
    return t == i32 ? integers(-2000000000, 2000000000) : t == i8 ? integers(-128, 127) : normal(30);
  };
  for (DType t : {i8, f8_e4m3, f8_e5m2, i32}) {
    const std::string name(name_of(t));
    const CaseOperand q{{t, {4, 300}}, quantized(t)};
    for (bool offset : {false, true}) {
      const auto add = [&](std::string granularity, Dims dims) {
        std::optional<CaseOperand> o;
        if (offset) o = CaseOperand{{granularity == "token" ? i32 : f32, dims}, integers(-20, 20)};
        list.push_back({granularity + "_" + name + (offset ? "_offset" : ""),
                        {q, CaseOperand{{f32, dims}, uniform(0.01, 0.02)}, o},
                        {{"granularity", granularity}}});
      };
      add("tensor", {});
      add("channel", {300});
      add("token", {4});
      add("group", {4, 3});
    }
  }
  for (DType t : {i8, u8, i16, u16, i32, f8_e4m3}) {
    const std::string name(name_of(t));
    const Fill fill =
        t == f8_e4m3 ? normal(30) : integers(t == u8 || t == u16 ? 0 : -100, t == u8 || t == i8 ? 200 : 20000);
    const auto add = [&](const std::string& form, Dims dims, Dims parameters, std::optional<DType> zero_point,
                         std::int64_t padding = 0) {
      std::optional<CaseOperand> zero;
      if (zero_point) zero = CaseOperand{{*zero_point, parameters}, integers(0, 100)};
      list.push_back(
          {"broadcast_" + name + form,
           {CaseOperand{{t, dims}, fill, padding}, CaseOperand{{f32, parameters}, uniform(0.01, 0.02)}, zero},
           {{"granularity", "broadcast"}}});
    };
    const DType own = t == f8_e4m3 ? f32 : t;
    add("", {3, 300}, {}, {});
    add("_axis", {2, 5, 33}, {5, 1}, own, 3);
    add("_blocks", {2, 4, 3, 8}, {2, 1, 3, 8}, own);
    add("_last", {4, 300}, {300}, own);
  }
  for (DType t : {u8, i16, u16})
    list.push_back({"token_" + std::string(name_of(t)),
                    {CaseOperand{{t, {3, 33}}, integers(0, 200), 7}, CaseOperand{{f32, {3}}, uniform(1, 2)},
                     CaseOperand{{t, {3}}, integers(0, 200)}},
                    {{"out_dtype", "bf16"}}});
  for (std::string out : {"bf16", "f16", "f32"})
    for (std::string mode : {"div", "mul"})
      list.push_back({mode + "_to_" + out,
                      {CaseOperand{{i8, {3, 33}}, integers(-128, 127), 7}, CaseOperand{{f32, {3}}, uniform(1, 2)}},
                      {{"out_dtype", out}, {"mode", mode}}});
  list.push_back({"small_groups",
                  {CaseOperand{{i8, {2, 3, 50}}, integers(-128, 127)}, CaseOperand{{f32, {2, 3, 4}}, uniform(1, 2), 2}},
                  {{"granularity", "group"}, {"group_size", std::int64_t{16}}}});
  list.push_back(
      {"zero_and_nan_scale",
       {CaseOperand{{i8, {3, 4}}, integers(-128, 127)}, CaseOperand{{f32, {3}}, values({0, NAN, INFINITY})}}});
  list.push_back({"nan_codes",
                  {CaseOperand{{f8_e4m3, {2, 40}}, values({NAN, 448, -448, 0.001953125, 0.0146484375, -0.0, 1})},
                   CaseOperand{{f32, {2}}, constant(0.5)}}});
  list.push_back(
      {"e5m2_quantized",
       {CaseOperand{{f8_e5m2, {2, 40}}, values({NAN, INFINITY, -INFINITY, 57344, 1.52587890625e-05, -0.0, 1})},
        CaseOperand{{f32, {2}}, constant(0.5)}}});
  list.push_back({"nothing", {CaseOperand{{i8, {0, 4}}}, CaseOperand{{f32, {0}}}}});
  list.push_back(
      {"long_row", {CaseOperand{{i8, {1, 5000}}, integers(-128, 127)}, CaseOperand{{f32, {1}}, constant(0.1)}}});
  return list;
}

}  // namespace

OpSpec define() {
  return {
      .category = "Quantization",
      .summary = "Dequantizes: the inverse of quantize and dynamic_quant",
      .semantics =
          "mode div: y = (q - offset) * scale; mul: y = (q - offset) / scale, in float32, for values quantized in that "
          "mode. Scale and offset (a zero "
          "point, or the "
          "offset that was added) are one number (granularity tensor), one per element of the last dimension "
          "(channel), one per row (token), one per "
          "group_size elements "
          "of a row (group), or broadcast to q as in NumPy (broadcast). int32 accumulators count as quantized values.",
      .inputs = {{"q", quantized_types | whole_quantized | DTypeSet{DType::i32}, "[.., K]", "quantized values"},
                 {"scale", {DType::f32}, "by granularity", "quantization step (div) or its reciprocal (mul)"},
                 {"offset", whole_quantized | DTypeSet{DType::f32, DType::i32}, "as scale",
                  "zero point or offset of the quantized values", Mapping::one_to_one, true}},
      .outputs = {{"y", dtypes::real, "[.., K]", "values"}},
      .attributes = {{"granularity",
                      std::string("token"),
                      "values that share a scale",
                      {"tensor", "channel", "token", "group", "broadcast"}},
                     group_size_attribute(),
                     {"mode", std::string("div"), "how the values were quantized", {"div", "mul"}},
                     {"out_dtype", std::string("f32"), "element type of y", {"f32", "bf16", "f16"}}},
      .infer = infer,
      .reference = reference,
      .operations =
          [](const Problem& p) { return 2 * static_cast<double>(p.input(in::q).elements().value(p.maximum)); },
      .rounding_depth = [](const Problem&) { return 3.0; },
      .cases = cases,
  };
}

}  // namespace cermet::dequantize_op
