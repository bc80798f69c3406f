// An operator applied to operands of known type: all of an operator that kernels and graphs see. What defines one is in
// operator.hpp.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/target.hpp"
#include "base/tensor.hpp"
#include "op/schema/attributes.hpp"

namespace cermet {

enum class OpKind : std::uint16_t {
#define X(name) name,
#include "op/ops.inc"
#undef X
};

/// Maximum number of operands, and of results, of one call.
inline constexpr int max_variadic = 64;

/// What names an operator. Each is the head of an OpDefinition.
struct Operator {
  OpKind kind{};
  std::string_view name = {};
};

struct OpDefinition;   // op/schema/operator.hpp
struct OperandSpec;    // op/schema/operator.hpp
struct AttributeSpec;  // op/schema/operator.hpp
struct Case;           // op/schema/case.hpp
struct ReferenceCall;  // op/schema/reference.hpp

/// What inference, cost and kernels look at. Dimensions may be symbolic.
struct Problem {
  const Operator* op = nullptr;
  std::vector<std::optional<TensorType>> inputs;  ///< nothing where an optional operand is not given
  std::vector<TensorType> outputs;
  Attributes attributes;  ///< resolved: every attribute of the schema is present
  std::uint64_t constant_inputs =
      0;                 ///< bit i: operand i is known before the first run (a weight), so a kernel may prepack it
  SymbolValues maximum;  ///< largest value each symbol may take
  const Target* target = nullptr;  ///< the device that kernels are chosen for; null for the CPU

  bool has(std::size_t i) const { return i < inputs.size() && inputs[i].has_value(); }
  bool is_constant(std::size_t i) const { return i < 64 && ((constant_inputs >> i) & 1u); }
  /// Type of a given operand; asserts that it is there.
  const TensorType& input(std::size_t i) const;
  /// Dimension `axis` of operand i (negative counts from the end), at the symbols' maximum.
  std::int64_t size(std::size_t i, int axis) const;
  std::string_view input_name(
      std::size_t i) const;  ///< as the schema names it: "bias"; a variadic operand's for all that it stands for
  std::vector<double> numbers() const;  ///< the attributes, in the schema's order; asserts that all are numbers
  std::string to_string() const;        ///< "linear(bf16[T, 2048], bf16[8192, 2048]) {out_dtype = "bf16"}"
};

/// Work of one call at the symbols' maximum.
struct Cost {
  double operations = 0;  ///< multiplications and additions counted separately
  double bytes = 0;       ///< every operand read once and every result written once, at least
};

/// The definition of an operator; built once.
const OpDefinition& definition(OpKind kind);
/// That of a problem's operator.
const OpDefinition& definition(const Problem& problem);
/// By name; nothing when there is none.
const OpDefinition* find_operator(std::string_view name);

/// Throws Error where an operator takes fewer operands than that.
void check_input_count(const OpDefinition& op, std::size_t count);
/// Validates operands and attributes against the schema, fills attribute defaults and infers outputs. Throws Error
/// naming the operand or attribute.
Problem make_problem(const OpDefinition& op, std::vector<std::optional<TensorType>> inputs,
                     const Attributes& attributes);
/// dense_dims of the problem's operator.
int dense_dims_of(const Problem& problem);
/// Bytes of a dense tensor at the symbols' maximum.
double bytes_of(const TensorType& type, const SymbolValues& maximum);
/// Operations and bytes of a problem at its symbols' maximum.
Cost cost_of(const Problem& problem);

}  // namespace cermet
