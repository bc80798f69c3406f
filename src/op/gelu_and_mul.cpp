#include <cmath>

#include "op/gated.hpp"
#include "op/pointwise_math.hpp"
#include "op/schema/operator.hpp"

namespace cermet::gelu_and_mul_op {
namespace {

double gelu(double x, const Attributes& attributes) {
  const std::string& form = attributes.text("approximate");
  if (form == "tanh") return x * sigmoid(2 * gelu_tanh_argument(x));
  if (form == "quick") return x * sigmoid(1.702 * x);
  return x * normal_cdf(x);
}

}  // namespace

OpSpec define() {
  std::vector<Case> extra;
  for (std::string form : {"tanh", "quick"})
    for (DType t : {DType::f32, DType::bf16, DType::f16})
      extra.push_back(
          {fmt::format("{}_{}", form, name_of(t)), {CaseOperand{{t, {3, 220}}, normal(3)}}, {{"approximate", form}}});
  return define_gated({
      .summary = "Gated GELU: gelu(gate) * up",
      .semantics = "y = gelu(gate) * up, with gelu as in the operators gelu (approximate = \"none\"), gelu_tanh "
                   "(\"tanh\") and gelu_quick (\"quick\"). The "
                   "gate is the first "
                   "half of a row (gate = \"second\": the other); interleaved = true takes even elements as the first "
                   "half and odd ones as the second. One "
                   "rounding, at the "
                   "store.",
      .attributes = {{"approximate", std::string("none"), "form of GELU", {"none", "tanh", "quick"}}},
      .apply = [](double gate, double up, const Attributes& attributes) { return gelu(gate, attributes) * up; },
      .operations = 12,
      .sensitivity =
          [](double gate, const Attributes& attributes) {
            const std::string& form = attributes.text("approximate");
            return 1 + (form == "none"   ? gate * gate / 2
                        : form == "tanh" ? std::abs(2 * gelu_tanh_argument(gate))
                                         : std::abs(1.702 * gate));
          },
      .extra_cases = std::move(extra),
  });
}

}  // namespace cermet::gelu_and_mul_op
