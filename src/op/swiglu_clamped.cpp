#include <cmath>

#include "op/gated.hpp"
#include "op/pointwise_math.hpp"
#include "op/schema/operator.hpp"

namespace cermet::swiglu_clamped_op {

OpSpec define() {
  return define_gated({
      .summary = "Clamped SwiGLU of GPT-OSS",
      .semantics = "g = min(gate, limit), u = clip(up, -limit, limit), y = g * sigmoid(alpha * g) * (u + up_offset). "
                   "The gate is the first half of a row (gate "
                   "= \"second\": the "
                   "other); interleaved = true takes even elements as the first half and odd ones as the second. One "
                   "rounding, at the store. NaN propagates "
                   "through both limits.",
      .attributes = {{"alpha", 1.702, "steepness of the sigmoid"},
                     {"limit", 7.0, "largest gate and largest magnitude of up"},
                     {"up_offset", 1.0, "added to up"}},
      .apply =
          [](double gate, double up, const Attributes& attributes) {
            const double limit = attributes.number("limit"), g = minimum(gate, limit),
                         u = minimum(maximum(up, -limit), limit);
            return g * sigmoid(attributes.number("alpha") * g) * (u + attributes.number("up_offset"));
          },
      .operations = 9,
      .sensitivity = [](double gate,
                        const Attributes& attributes) { return 1 + std::abs(attributes.number("alpha") * gate); },
      .extra_cases = {{"parameters",
                       {CaseOperand{{DType::f32, {3, 220}}, normal(3)}},
                       {{"alpha", 1.0}, {"limit", 2.5}, {"up_offset", 0.0}, {"interleaved", true}}}},
  });
}

}  // namespace cermet::swiglu_clamped_op
