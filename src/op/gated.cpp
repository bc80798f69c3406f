#include "op/gated.hpp"

#include "op/schema/operator.hpp"
#include "op/schema/reference.hpp"

namespace cermet {
namespace {

std::vector<TensorType> infer(const Problem& p) {
  expect_min_rank(p, 0, 1);
  TensorType y = p.input(0);
  const Dim last = y.dims.back();
  if (!last.is_constant() || last.constant() % 2 != 0)
    bad_operand(p, 0, "an even, constant last dimension", p.input(0).to_string());
  y.dims.back() = last.constant() / 2;
  y.dtype = dtype_attribute(p, "out_dtype", y.dtype, dtypes::real);
  return {y};
}

std::vector<Case> cases() {
  std::vector<Case> list;
  using enum DType;
  for (DType t : {f32, bf16, f16})
    for (std::int64_t features : {1, 7, 128, 700})
      list.push_back({fmt::format("{}_f{}", name_of(t), features), {CaseOperand{{t, {3, 2 * features}}, normal(2)}}});
  for (std::string gate : {"first", "second"})
    for (bool interleaved : {false, true})
      for (DType t : {f32, bf16})
        list.push_back({fmt::format("{}_{}_{}", gate, interleaved ? "interleaved" : "halves", name_of(t)),
                        {CaseOperand{{t, {2, 2, 1110}}, normal(3), 5}},
                        {{"gate", gate}, {"interleaved", interleaved}}});
  list.push_back({"to_bf16", {CaseOperand{{f32, {2, 64}}}}, {{"out_dtype", "bf16"}}});
  list.push_back({"to_f32", {CaseOperand{{f16, {2, 64}}}}, {{"out_dtype", "f32"}}});
  list.push_back({"one_dimension", {CaseOperand{{f32, {10}}}}});
  list.push_back({"long_row", {CaseOperand{{bf16, {1, 20000}}}}});
  list.push_back({"no_rows", {CaseOperand{{f32, {0, 16}}}}});
  list.push_back({"no_features", {CaseOperand{{f32, {3, 0}}}}});
  list.push_back(
      {"large", {CaseOperand{{f32, {1, 12}}, values({-1e30, -3e3, -95, -88, 88, 1e30, 1, -2, 3, 1, 1, 1})}}});
  list.push_back(
      {"not_finite", {CaseOperand{{f32, {1, 12}}, values({NAN, 1, INFINITY, 1, -1, 2, 1, NAN, 1, -INFINITY, 1, 2})}}});
  return list;
}

}  // namespace

AttributeSpec gate_attribute() {
  return {"gate", std::string("first"), "the half of a row that goes through the activation", {"first", "second"}};
}
AttributeSpec interleaved_attribute() {
  return {"interleaved", false, "the halves alternate element by element instead of following each other"};
}

GatedLayout::GatedLayout(const Attributes& attributes, std::int64_t features) {
  const bool interleaved = attributes.flag("interleaved"), gate_is_first = attributes.text("gate") == "first";
  const std::int64_t second = interleaved ? 1 : features;
  step = interleaved ? 2 : 1;
  gate_first = gate_is_first ? 0 : second;
  up_first = gate_is_first ? second : 0;
}

OpSpec define_gated(GatedActivation activation) {
  std::vector<AttributeSpec> attributes = std::move(activation.attributes);
  for (const AttributeSpec& shared : {gate_attribute(), interleaved_attribute()}) attributes.push_back(shared);
  attributes.push_back({"out_dtype", std::string(), "element type of y; that of x where empty"});
  return {
      .category = "Activation",
      .summary = activation.summary,
      .semantics = activation.semantics,
      .inputs = {{"x", dtypes::real, "[.., 2F]", "gate and linear half of each row"}},
      .outputs = {{"y", dtypes::real, "[.., F]", "gated rows"}},
      .attributes = std::move(attributes),
      .infer = infer,
      .reference =
          [apply = activation.apply, sensitivity = activation.sensitivity](const ReferenceCall& call) {
            const TensorView &x = call.inputs[0], &y = call.outputs[0];
            const std::int64_t features = y.shape.back();
            const GatedLayout layout(call.attributes, features);
            for (std::int64_t i = 0; i < y.elements(); ++i) {
              const std::int64_t row = i / features * 2 * features;
              const double gate = load(x, row + layout.gate(i % features)), up = load(x, row + layout.up(i % features));
              const double result = apply(gate, up, call.attributes);
              store(y, i, result);
              // A float32 activation below 2^-126 may be 0: 2^-102 in units of 2^-24.
              note_magnitude(call, 0, i,
                             (sensitivity ? sensitivity(gate, call.attributes) : 1) * std::abs(result) +
                                 0x1p-102 * std::abs(gate * up));
            }
          },
      .operations =
          [count = activation.operations](const Problem& p) {
            return count * static_cast<double>(p.outputs[0].elements().value(p.maximum));
          },
      .rounding_depth = [](const Problem&) { return 16.0; },
      .cases =
          [extra = std::move(activation.extra_cases)] {
            std::vector<Case> list = cases();
            list.insert(list.end(), extra.begin(), extra.end());
            return list;
          },
  };
}

}  // namespace cermet
