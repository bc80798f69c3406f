#include "op/operands.hpp"
#include "op/pointwise_math.hpp"
#include "op/quantization.hpp"
#include "op/schema/operator.hpp"
#include "op/schema/reference.hpp"

namespace cermet::dynamic_quant_op {

namespace in = op::dynamic_quant;
namespace {

void check_smooth(const Problem& p) {
  if (!p.has(in::smooth)) {
    if (p.has(in::group_index))
      bad_operand(p, in::group_index, "nothing without smooth[E, K]", p.input(in::group_index).to_string());
    return;
  }
  const TensorType& smooth = p.input(in::smooth);
  if (smooth.rank() != 1 && smooth.rank() != 2) bad_operand(p, in::smooth, "[K] or [E, K]", smooth.to_string());
  expect_dim(p, in::smooth, -1, dim_of(p, in::x, -1), "K of x");
  if (p.has(in::group_index) != (smooth.rank() == 2))
    bad_operand(p, in::smooth, p.has(in::group_index) ? "[E, K] with a group index" : "[K] without a group index",
                smooth.to_string());
  if (!p.has(in::group_index)) return;
  const Dims& x = p.input(in::x).dims;
  if (p.attributes.text("index") == "ids")
    expect_dims(p, in::group_index, Dims(x.begin(), x.end() - 1), "the leading ones of x");
  else expect_dims(p, in::group_index, {smooth.dims[0] + Dim(1)}, "E + 1 offsets");
}

std::vector<TensorType> infer(const Problem& p) {
  expect_min_rank(p, in::x, 1);
  check_smooth(p);
  const QuantizedFormat format = checked_quantized_format(p);
  if (p.has(in::bound)) {
    const TensorType& bound = p.input(in::bound);
    if (bound.rank() > 1 || (bound.rank() == 1 && bound.dims[0] != Dim(1)))
      bad_operand(p, in::bound, "[] or [1]", bound.to_string());
    if (format.asymmetric) bad_operand(p, in::bound, "nothing beside a zero point", bound.to_string());
  }
  const Dims scales = p.attributes.text("granularity") == "tensor" ? Dims{} : scale_dims(p, in::x, format);
  std::vector<TensorType> outputs{{format.dtype, p.input(in::x).dims}, {DType::f32, scales}};
  if (format.asymmetric) outputs.push_back({DType::i32, scales});
  return outputs;
}

/// Row of smooth[E, K] for row `row` of x.
std::int64_t group_of(const ReferenceCall& call, std::int64_t row) {
  const TensorView& index = call.inputs[in::group_index];
  const std::int64_t experts = call.inputs[in::smooth].shape[0];
  std::int64_t group = 0;
  if (call.attributes.text("index") == "ids") group = load_index(index, row);
  else
    while (group < experts && row >= load_index(index, group + 1)) ++group;
  check_index("dynamic_quant", "group_index", group, experts);
  return group;
}

void reference(const ReferenceCall& call) {
  const TensorView& x = call.inputs[in::x];
  QuantizedFormat format = quantized_format(call.attributes);
  if (call.has(in::bound)) format.bound = static_cast<float>(load(call.inputs[in::bound], 0));
  std::vector<float> values(static_cast<std::size_t>(x.elements()));
  const std::int64_t length = x.shape.back(), rows = length == 0 ? Rows(x).count() : x.elements() / length;
  for (std::int64_t i = 0; i < x.elements(); ++i) {
    const std::int64_t row = i / length, smooth_row = call.has(in::group_index) ? group_of(call, row) : 0;
    const auto v = static_cast<float>(load(x, i));
    values[static_cast<std::size_t>(i)] =
        call.has(in::smooth) ? v * static_cast<float>(load(call.inputs[in::smooth], smooth_row * length + i % length))
                             : v;
  }
  const QuantizedViews out{call.outputs[0], call.outputs[1], format.asymmetric ? call.outputs[2] : TensorView()};
  if (call.attributes.text("granularity") == "tensor") return quantize_row(values, 0, format, out);
  for (std::int64_t row = 0; row < rows; ++row)
    quantize_row(std::span(values).subspan(static_cast<std::size_t>(row * length), static_cast<std::size_t>(length)),
                 row, format, out);
}

std::vector<Case> cases() {
  std::vector<Case> list;
  using enum DType;
  for (std::string granularity : {"token", "tensor", "group"}) {
    for (std::string code : {"i8", "f8_e4m3", "f8_e5m2"})
      for (DType t : {f32, bf16, f16})
        list.push_back({fmt::format("{}_{}_{}", granularity, code, name_of(t)),
                        {CaseOperand{{t, {4, 300}}}},
                        {{"granularity", granularity}, {"out_dtype", code}}});
    for (DType t : {f32, bf16})
      list.push_back({fmt::format("{}_asymmetric_{}", granularity, name_of(t)),
                      {CaseOperand{{t, {4, 300}}, normal(1, 0.7)}},
                      {{"granularity", granularity}, {"asymmetric", true}}});
    list.push_back({granularity + "_smooth_range",
                    {CaseOperand{{bf16, {3, 131}}}, CaseOperand{{f32, {131}}, uniform(0.1, 3)}},
                    {{"granularity", granularity}, {"range", "127.5"}}});
    list.push_back({granularity + "_nothing", {CaseOperand{{f32, {0, 16}}}}, {{"granularity", granularity}}});
    list.push_back({granularity + "_no_columns",
                    {CaseOperand{{f32, {3, 0}}}},
                    {{"granularity", granularity}, {"asymmetric", true}}});
    list.push_back(
        {granularity + "_strided", {CaseOperand{{f16, {2, 3, 140}}, normal(), 5}}, {{"granularity", granularity}}});
    list.push_back(
        {granularity + "_zeros", {CaseOperand{{f32, {2, 20}}, constant(0)}}, {{"granularity", granularity}}});
  }
  for (std::int64_t k : {1, 7, 129, 4096}) list.push_back({fmt::format("k{}", k), {CaseOperand{{bf16, {3, k}}}}});
  list.push_back({"experts_ids",
                  {CaseOperand{{f32, {6, 40}}}, CaseOperand{{bf16, {3, 40}}, uniform(0.1, 3)},
                   CaseOperand{{i64, {6}}, integers(0, 2)}}});
  list.push_back({"experts_offsets",
                  {CaseOperand{{f32, {6, 40}}}, CaseOperand{{f32, {3, 40}}, uniform(0.1, 3)},
                   CaseOperand{{i32, {4}}, values({0, 2, 2, 6})}},
                  {{"index", "offsets"}}});
  list.push_back(
      {"small_groups", {CaseOperand{{f32, {3, 50}}}}, {{"granularity", "group"}, {"group_size", std::int64_t{16}}}});
  list.push_back(
      {"long_groups", {CaseOperand{{f32, {2, 1500}}}}, {{"granularity", "group"}, {"group_size", std::int64_t{1000}}}});
  for (std::string granularity : {"token", "tensor", "group"}) {
    list.push_back({granularity + "_power_of_two",
                    {CaseOperand{{bf16, {4, 300}}}},
                    {{"granularity", granularity}, {"power_of_two", true}, {"out_dtype", "f8_e4m3"}}});
    list.push_back({granularity + "_bound",
                    {CaseOperand{{bf16, {4, 300}}}, std::nullopt, std::nullopt,
                     CaseOperand{{f32, granularity == "token" ? Dims{} : Dims{1}}, constant(2.5)}},
                    {{"granularity", granularity}, {"out_dtype", granularity == "tensor" ? "i8" : "f8_e4m3"}}});
  }
  list.push_back({"bound_of_long_rows",
                  {CaseOperand{{f32, {2, 5000}}}, CaseOperand{{f32, {5000}}, uniform(0.1, 3)}, std::nullopt,
                   CaseOperand{{f32, {}}, constant(0.75)}},
                  {{"power_of_two", true}, {"out_dtype", "f8_e5m2"}}});
  const Fill rows =
      values({1, 2, NAN, 4, 5, 6, INFINITY, 8, 9, 1e-42, -1e-44, 0, -3, -7, -5, 0.5, 127, 63.5, -62.5, 1.5});
  list.push_back({"not_finite_power_of_two",
                  {CaseOperand{{f32, {4, 5}}, rows}, std::nullopt, std::nullopt, CaseOperand{{f32, {1}}, constant(8)}},
                  {{"power_of_two", true}, {"out_dtype", "f8_e4m3"}}});
  for (bool asymmetric : {false, true})
    list.push_back({asymmetric ? "not_finite_asymmetric" : "not_finite",
                    {CaseOperand{{f32, {4, 5}}, rows}},
                    {{"asymmetric", asymmetric}}});
  list.push_back({"not_finite_e4m3", {CaseOperand{{f32, {4, 5}}, rows}}, {{"out_dtype", "f8_e4m3"}}});
  return list;
}

}  // namespace

OpSpec define() {
  return {
      .category = "Quantization",
      .summary = "Quantizes with scales computed from the values",
      .semantics =
          "v = x * smooth; scale = max |v| / limit over a row (granularity token), everything (tensor) or each "
          "group_size values of a row (group; the last one "
          "may be "
          "short); q = round(v / scale), each operation in float32. The limit is 127 (or range = 127.5) for int8, 448 "
          "for e4m3, 57344 for e5m2. Asymmetric "
          "int8: "
          "low = min(v, 0), high = max(v, 0), scale = (high - low) / 255, zero_point = clamp(round(-128 - low / "
          "scale), -128, 127), q = round(v / scale + "
          "zero_point). "
          "Zeros give scale 0 and values 0. A NaN gives a NaN scale, an infinity an infinite one; their quantized "
          "values are those of the NaN that v / scale "
          "is (int8: 0). "
          "smooth "
          "is [K], or [E, K] with a group index: the row of smooth for each row of x (index = \"ids\"), or E + 1 "
          "offsets of consecutive rows (\"offsets\"). With bound, scales are min(max |v|, bound) / limit, and larger "
          "values saturate; with power_of_two they are rounded up to powers of two, 2^-126 at least, which f8_e8m0 "
          "stores exactly. Exact.",
      .inputs = {{"x", dtypes::real, "[.., K]", "values", Mapping::many_to_many},
                 {"smooth", dtypes::real, "[K] or [E, K]", "factors that move outliers to the weights",
                  Mapping::one_to_one, true},
                 {"group_index", dtypes::index, "[..] or [E+1]", "which row of smooth[E, K]", Mapping::one_to_many,
                  true},
                 {"bound",
                  {DType::f32},
                  "[] or [1]",
                  "largest magnitude that scales are made for",
                  Mapping::one_to_many,
                  true}},
      .outputs = {{"q", quantized_types, "[.., K]", "quantized values"},
                  {"scale", {DType::f32}, "[..], [] or [.., groups]", "quantization step"},
                  {"zero_point", {DType::i32}, "as scale", "quantized value of 0, where asymmetric"}},
      .attributes = {{"granularity", std::string("token"), "values that share a scale", {"token", "tensor", "group"}},
                     group_size_attribute(),
                     asymmetric_attribute(),
                     range_attribute(),
                     {"index", std::string("ids"), "meaning of group_index", {"ids", "offsets"}},
                     {"power_of_two", false, "scales are rounded up to powers of two (ue8m0); not with asymmetric"},
                     quantized_type_attribute()},
      .infer = infer,
      .reference = reference,
      .operations =
          [](const Problem& p) { return 4 * static_cast<double>(p.input(in::x).elements().value(p.maximum)); },
      .rounding_depth = [](const Problem&) { return 0.0; },
      .cases = cases,
  };
}

}  // namespace cermet::dynamic_quant_op
