#include <cmath>

#include "op/gated.hpp"
#include "op/schema/operator.hpp"

namespace cermet::silu_and_mul_op {

OpSpec define() {
  return define_gated({
      .summary = "Gated SiLU (SwiGLU): silu(gate) * up",
      .semantics = "y = gate / (1 + exp(-gate)) * up. The gate is the first half of a row (gate = \"second\": the "
                   "other); interleaved = true takes even elements as the "
                   "first half and odd ones as the second. One rounding, at the store. NaN propagates; silu(-inf) is "
                   "NaN, as the formula gives.",
      .attributes = {},
      .apply = [](double gate, double up, const Attributes&) { return gate / (1 + std::exp(-gate)) * up; },
      .operations = 5,
      .sensitivity = nullptr,
      .extra_cases = {},
  });
}

}  // namespace cermet::silu_and_mul_op
