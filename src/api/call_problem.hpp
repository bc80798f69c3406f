// Descriptors, attributes and ranges of a caller as the problem that kernels are chosen for.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "cermet/cermet.h"
#include "op/schema/operator.hpp"
#include "op/schema/problem.hpp"

namespace cermet::api {

/// A dimension that varies from run to run, and the operand that gives its value.
struct Range {
  char letter;
  Symbol symbol;
  std::int64_t maximum;
  std::size_t input = 0;
  int axis = 0;
};

/// Name of operand i in messages; the last one stands for all that a variadic operator has.
inline std::string_view spec_name(const std::vector<OperandSpec>& specs, std::size_t i) {
  return specs[std::min(i, specs.size() - 1)].name;
}

/// The ranges with their symbols; where they are read is filled in by problem_of().
std::vector<Range> ranges_of(std::span<const cermet_range> ranges, std::string_view op);

/// The caller's attributes. Throws Error naming the one that cannot be read, or is given twice.
Attributes attributes_of(std::span<const cermet_attribute> list, const OpDefinition& op);

/// Validates and infers, with every symbol's maximum. `constant_inputs`: as Problem has it. Throws Error naming
/// operand, attribute or range.
Problem problem_of(const OpDefinition& op, std::vector<std::optional<TensorType>> types, const Attributes& attributes,
                   std::uint64_t constant_inputs, std::vector<Range>& ranges);
/// The same for descriptors.
Problem problem_of(std::string_view name, std::span<const cermet_descriptor> inputs, const Attributes& attributes,
                   std::vector<Range>& ranges);

}  // namespace cermet::api
