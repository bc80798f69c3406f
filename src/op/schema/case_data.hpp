// Operands made from a case's recipe, and the comparison of a kernel's results with the reference.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "base/buffer.hpp"
#include "op/schema/operator.hpp"

namespace cermet {

/// A problem with memory behind its operands and results.
struct CaseData {
  Problem problem;
  std::vector<OwnedTensor> owned_inputs;
  std::vector<TensorView> inputs;  ///< one per operand of the problem; `present` is false where it is not given
};

/// Element `index` of an operand that is filled by a recipe; takes the next numbers from `random`.
double draw(const Fill& fill, std::int64_t index, std::mt19937_64& random);

/// Makes a case's operands: the same bytes for the same operator and case on every machine.
CaseData make_case_data(const OpDefinition& op, const Case& test_case);

/// What the reference computes. Results of type f32, bf16 and f16 are kept as doubles before their rounding; others
/// have their own type.
struct Expected {
  std::vector<OwnedTensor> outputs;
  std::vector<std::vector<double>> magnitude;  ///< see ReferenceCall
};
Expected run_reference(const CaseData& data);

/// Compares one kernel's results with the reference: half a unit in the last place of the output for its one rounding,
/// plus the error bound of float32 accumulation, rounding_depth * 2^-24 * magnitude; of f64, whose references round as
/// kernels do, rounding_depth * 2^-52 * magnitude. Integer and fp8 results may differ by integer_slack. Returns "" when
/// all agree, else a line that names output, element, expected, found and bound.
std::string compare(const Problem& problem, const Expected& expected, const std::vector<TensorView>& outputs);

}  // namespace cermet
