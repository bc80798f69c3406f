#include "op/group_norm.hpp"
#include "op/schema/operator.hpp"

namespace cermet::instance_norm_op {

OpSpec define() {
  std::vector<Case> cases;
  using enum DType;
  for (DType t : {f32, bf16, f16})
    cases.push_back({std::string(name_of(t)),
                     {CaseOperand{{t, {2, 3, 5, 7}}, normal(2, 1)}, CaseOperand{{t, {3}}}, CaseOperand{{t, {3}}}}});
  cases.push_back({"long", {CaseOperand{{f32, {1, 2, 1300}}, normal(1, 50)}, CaseOperand{{f32, {2}}}}});
  cases.push_back({"no_parameters", {CaseOperand{{f32, {2, 3, 11}}}}, {{"eps", 1e-3}}});
  cases.push_back({"one_position", {CaseOperand{{f32, {2, 3}}}}});
  cases.push_back({"no_channels", {CaseOperand{{f32, {2, 0, 5}}}}});
  return define_group_normalization({
      .summary = "Normalization of each channel of each sample",
      .semantics = "y = (x - mean) / sqrt(variance + eps) * weight[c] + bias[c], with mean and (biased) variance over "
                   "the positions of each channel of each sample: "
                   "group_norm with one group per channel.",
      .attributes = {},
      .groups = [](const Attributes&, std::int64_t channels) { return channels; },
      .cases = std::move(cases),
  });
}

}  // namespace cermet::instance_norm_op
