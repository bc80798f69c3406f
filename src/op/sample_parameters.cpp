#include "op/sample_parameters.hpp"

#include <cmath>

#include "op/schema/operator.hpp"

namespace cermet {
namespace {

/// Element b of an optional operand; the value that switches it off where it is not given.
template <class T>
T value_of(std::span<const TensorView> inputs, std::size_t operand, std::int64_t b, T fallback) {
  return operand < inputs.size() && inputs[operand].present ? inputs[operand].as<const T>()[b] : fallback;
}

void check(bool in_range, std::size_t operand, std::int64_t b, std::string_view expected, double found) {
  const OperandSpec& spec = definition(OpKind::sample).inputs[operand];
  require(in_range, "sample: operand {} ({}): expected {}, found {} for sequence {}", operand, spec.name, expected,
          found, b);
}

}  // namespace

SampleParameters::SampleParameters(std::span<const TensorView> inputs, std::int64_t b)
    : temperature(value_of(inputs, sample_temperature, b, 1.0f)),
      top_p(value_of(inputs, sample_top_p, b, 1.0f)),
      min_p(value_of(inputs, sample_min_p, b, 0.0f)),
      penalty(value_of(inputs, sample_penalty, b, 1.0f)),
      top_k(value_of(inputs, sample_top_k, b, std::int32_t{0})),
      seed(static_cast<std::uint64_t>(value_of(inputs, sample_seeds, b, std::int64_t{0}))),
      step(static_cast<std::uint64_t>(value_of(inputs, sample_steps, b, std::int64_t{0}))) {
  check(temperature >= 0 && std::isfinite(temperature), sample_temperature, b, "a finite number, not negative",
        temperature);
  check(top_k >= 0, sample_top_k, b, "a number of tokens, or 0 for all", static_cast<double>(top_k));
  check(top_p > 0 && top_p <= 1, sample_top_p, b, "a number above 0, at most 1", top_p);
  check(min_p >= 0 && min_p <= 1, sample_min_p, b, "a number from 0 to 1", min_p);
  check(penalty > 0 && std::isfinite(penalty), sample_penalty, b, "a finite number above 0", penalty);
}

}  // namespace cermet
