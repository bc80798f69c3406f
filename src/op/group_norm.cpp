#include "op/group_norm.hpp"

#include "op/operands.hpp"
#include "op/schema/operator.hpp"
#include "op/schema/reference.hpp"

namespace cermet {
namespace {

using Groups = std::int64_t (*)(const Attributes&, std::int64_t);

std::vector<TensorType> infer_groups(const Problem& p, Groups groups) {
  expect_min_rank(p, 0, 2);
  const Dim channels = dim_of(p, 0, 1);
  if (!channels.is_constant()) bad_operand(p, 0, "a constant number of channels (dimension 1)", p.input(0).to_string());
  for (std::size_t operand : {std::size_t{1}, std::size_t{2}})
    if (p.has(operand)) expect_dims(p, operand, {channels}, "channels of x");
  const std::int64_t count = groups(p.attributes, channels.constant());
  if (count < 0 || (count == 0 && channels.constant() > 0) || (count > 0 && channels.constant() % count != 0))
    bad_attribute(p, "groups", fmt::format("a positive divisor of {} channels", channels.constant()));
  expect_eps(p);
  return {{dtype_attribute(p, "out_dtype", p.input(0).dtype, dtypes::real), p.input(0).dims}};
}

void normalize_groups(const ReferenceCall& call, Groups groups) {
  const TensorView& x = call.inputs[0];
  if (x.elements() == 0) return;
  const std::int64_t channels = x.shape[1], count = x.shape[0] * groups(call.attributes, channels),
                     length = x.elements() / count;
  const std::int64_t positions = x.elements() / (x.shape[0] * channels);
  for (std::int64_t g = 0; g < count; ++g) {
    std::vector<double> values;
    for (std::int64_t i = 0; i < length; ++i) values.push_back(load(x, g * length + i));
    const RowStatistics statistics = row_statistics(values, call.attributes.number("eps"));
    for (std::int64_t i = 0; i < length; ++i) {
      const std::int64_t channel = (g * length + i) / positions % channels;
      const double weight = call.has(op::group_norm::weight) ? load(call.inputs[op::group_norm::weight], channel) : 1,
                   bias = call.has(op::group_norm::bias) ? load(call.inputs[op::group_norm::bias], channel) : 0;
      store_normalized(call, g * length + i, values[static_cast<std::size_t>(i)], statistics, weight, bias);
    }
  }
}

}  // namespace

OpSpec define_group_normalization(GroupNormalization op) {
  op.attributes.push_back({"eps", 1e-5, "added to the variance"});
  op.attributes.push_back({"out_dtype", std::string(), "element type of y; that of x where empty"});
  return {
      .category = "Normalization",
      .summary = op.summary,
      .semantics = op.semantics,
      .inputs = {{"x", dtypes::real, "[B, C, ..]", "samples with channels", Mapping::many_to_many},
                 {"weight", dtypes::real, "[C]", "scale per channel", Mapping::one_to_one, true},
                 {"bias", dtypes::real, "[C]", "added per channel", Mapping::one_to_one, true}},
      .outputs = {{"y", dtypes::real, "[B, C, ..]", "normalized samples"}},
      .attributes = std::move(op.attributes),
      .infer = [groups = op.groups](const Problem& p) { return infer_groups(p, groups); },
      .reference = [groups = op.groups](const ReferenceCall& call) { normalize_groups(call, groups); },
      .operations = [](const Problem& p) { return 7 * static_cast<double>(p.input(0).elements().value(p.maximum)); },
      .rounding_depth =
          [](const Problem& p) {
            double length = 1;
            for (int axis = 1; axis < p.input(0).rank(); ++axis) length *= static_cast<double>(p.size(0, axis));
            return length / 2 + 8;
          },
      .cases = [list = std::move(op.cases)] { return list; },
      .dense_dims = [](const Problem& p) { return p.input(0).rank() - 1; },
  };
}

}  // namespace cermet

namespace cermet::group_norm_op {

OpSpec define() {
  std::vector<Case> cases;
  using enum DType;
  const auto vector = [](DType t, std::int64_t n) { return CaseOperand{{t, {n}}, normal(0.5, 1)}; };
  for (DType t : {f32, bf16, f16})
    for (std::int64_t groups : {1, 2, 6})
      cases.push_back({fmt::format("{}_groups{}", name_of(t), groups),
                       {CaseOperand{{t, {2, 6, 5, 7}}, normal(2, 1)}, vector(t, 6), vector(t, 6)},
                       {{"groups", groups}}});
  cases.push_back(
      {"long", {CaseOperand{{f32, {1, 4, 700}}}, vector(f32, 4), vector(f32, 4)}, {{"groups", std::int64_t{2}}}});
  cases.push_back({"clusters",
                   {CaseOperand{{f16, {1, 8, 64, 128}}, normal(2, 1)}, vector(f32, 8), vector(f32, 8)},
                   {{"groups", std::int64_t{2}}}});
  cases.push_back({"blocks",
                   {CaseOperand{{bf16, {40, 8, 16, 16}}, normal(2, 1)}, vector(bf16, 8), vector(bf16, 8)},
                   {{"groups", std::int64_t{2}}}});
  cases.push_back({"longest",
                   {CaseOperand{{f32, {1, 3, 160, 320}}, normal(2, 1)}, vector(f32, 3), vector(f32, 3)},
                   {{"groups", std::int64_t{1}}}});
  cases.push_back({"many_long",
                   {CaseOperand{{f16, {300, 2, 64, 128}}, normal(2, 1)}, vector(f16, 2), vector(f16, 2)},
                   {{"groups", std::int64_t{1}}}});
  cases.push_back({"partly_in_registers",
                   {CaseOperand{{bf16, {1, 2, 512, 900}}, normal(2, 1)}, vector(f32, 2), vector(bf16, 2)},
                   {{"groups", std::int64_t{1}}}});
  cases.push_back({"long_to_f32",
                   {CaseOperand{{f16, {3, 4, 101, 68}}, normal(2, 1)}},
                   {{"groups", std::int64_t{1}}, {"out_dtype", "f32"}}});
  cases.push_back({"uneven_positions",
                   {CaseOperand{{f16, {2, 8, 3, 5}}, normal(2, 1)}, vector(f32, 8), vector(f32, 8)},
                   {{"groups", std::int64_t{1}}}});
  cases.push_back(
      {"no_positions", {CaseOperand{{f32, {3, 8}}}, vector(bf16, 8), vector(f32, 8)}, {{"groups", std::int64_t{4}}}});
  cases.push_back({"no_parameters",
                   {CaseOperand{{bf16, {2, 4, 9}}}},
                   {{"groups", std::int64_t{2}}, {"eps", 1e-3}, {"out_dtype", "f32"}}});
  cases.push_back({"no_samples", {CaseOperand{{f32, {0, 4, 9}}}}, {{"groups", std::int64_t{2}}}});
  cases.push_back({"empty", {CaseOperand{{f32, {2, 4, 0}}}}, {{"groups", std::int64_t{2}}}});
  cases.push_back(
      {"nan", {CaseOperand{{f32, {1, 2, 4}}, values({1, 2, NAN, 4, 5, 6, 7, 9})}}, {{"groups", std::int64_t{2}}}});
  return define_group_normalization({
      .summary = "Normalization over groups of channels",
      .semantics = "For each sample and each of `groups` equal groups of consecutive channels: y = (x - mean) / "
                   "sqrt(variance + eps) * weight[c] + bias[c], "
                   "with mean and (biased) "
                   "variance over the group's channels and all positions, in float32 and two passes.",
      .attributes = {{"groups", std::int64_t{1}, "groups of channels; divides C"}},
      .groups = [](const Attributes& attributes, std::int64_t) { return attributes.integer("groups"); },
      .cases = std::move(cases),
  });
}

}  // namespace cermet::group_norm_op
