// What an operator is: schema, shape inference, mapping types, reference, cost and cases. `ops.inc` lists all of them.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/target.hpp"
#include "base/tensor.hpp"
#include "op/attributes.hpp"
#include "op/case.hpp"

namespace cermet {

enum class OpKind : std::uint16_t {
#define X(name) name,
#include "op/ops.inc"
#undef X
};

/// How an output's elements read an operand's elements (after DNNFusion, PLDI 2021); asked per operand by the fusion planner.
enum class Mapping : std::uint8_t { one_to_one, one_to_many, many_to_many, reorganize, shuffle, barrier };
std::string_view name_of(Mapping mapping);

/// One input or output of an operator.
struct OperandSpec {
  std::string_view name = {};
  DTypeSet dtypes;
  std::string_view shape;  ///< for readers: "[.., K]"
  std::string_view doc;
  Mapping mapping = Mapping::one_to_one;
  bool optional = false;
  bool variadic = false;  ///< the last input or the last output only: one or more of this kind
};

/// One attribute with its default. `choices`, where given, lists the accepted strings.
struct AttributeSpec {
  std::string_view name = {};
  AttributeValue fallback;
  std::string_view doc;
  std::vector<std::string_view> choices = {};
};

/// Maximum number of operands, and of results, of one call.
inline constexpr int max_variadic = 64;

struct OpDefinition;

/// An operator applied to operands of known type: what inference, cost, and kernels look at. Dimensions may be symbolic.
struct Problem {
  const OpDefinition* op = nullptr;
  std::vector<std::optional<TensorType>> inputs;  ///< nothing where an optional operand is not given
  std::vector<TensorType> outputs;
  Attributes attributes;              ///< resolved: every attribute of the schema is present
  std::uint64_t constant_inputs = 0;  ///< bit i: operand i is known before the first run (a weight), so a kernel may prepack it
  SymbolValues maximum;               ///< largest value each symbol may take
  const Target* target = nullptr;     ///< the device that kernels are chosen for; null for the CPU

  bool has(std::size_t i) const { return i < inputs.size() && inputs[i].has_value(); }
  bool is_constant(std::size_t i) const { return i < 64 && ((constant_inputs >> i) & 1u); }
  /// Type of a given operand; asserts that it is there.
  const TensorType& input(std::size_t i) const;
  /// Dimension `axis` of operand i (negative counts from the end), at the symbols' maximum.
  std::int64_t size(std::size_t i, int axis) const;
  std::string to_string() const;  ///< "linear(bf16[T, 2048], bf16[8192, 2048]) {out_dtype = "bf16"}"
};

/// Work of one call at the symbols' maximum.
struct Cost {
  double operations = 0;  ///< multiplications and additions counted separately
  double bytes = 0;       ///< every operand read once and every result written once, at least
};

/// Operands of a reference run. Views may be strided in their leading dimensions.
struct ReferenceCall {
  std::span<const TensorView> inputs;
  std::span<const TensorView> outputs;
  const Attributes& attributes;
  /// Per output and dense element: the sum of the absolute terms that were added, which scales the error bound.
  /// A reference that leaves an entry at 0 means "the result's own magnitude".
  std::vector<std::vector<double>>* magnitude = nullptr;

  bool has(std::size_t i) const { return i < inputs.size() && inputs[i].present; }
};

struct OpDefinition {
  OpKind kind{};
  std::string_view name = {};
  std::string_view category = {};  ///< heading in docs and `cermet ops`
  std::string_view summary;        ///< one line
  std::string_view semantics;      ///< what exactly is computed: formula, rounding, corner cases
  std::vector<OperandSpec> inputs, outputs;
  std::vector<AttributeSpec> attributes = {};
  /// Output types from input types; throws Error naming the operand. Dtypes and attribute names were checked before.
  std::function<std::vector<TensorType>(const Problem&)> infer;
  /// Plain C++ with double accumulation: the definition.
  std::function<void(const ReferenceCall&)> reference;
  std::function<double(const Problem&)> operations;
  /// Bytes moved; where empty, the sum of all operands and results.
  std::function<double(const Problem&)> bytes = {};
  /// Longest chain of float32 roundings behind a result: K for a product. Scales the error bound of kernels.
  std::function<double(const Problem&)> rounding_depth = {};
  /// Largest difference, in quantization steps, that integer and fp8 results may show. 0: exact.
  int integer_slack = 0;
  std::function<std::vector<Case>()> cases;
  /// How many trailing dimensions of every operand and result are dense among themselves; 1 where empty. Operators check it where views arrive.
  std::function<int(const Problem&)> dense_dims = {};
  /// Output i shares the memory of the input that aliases[i] names; -1 for none. Shorter than outputs means none.
  std::vector<int> aliases = {};
  /// Input that output i may coincide with exactly, because every kernel reads an element's row before it writes it; -1 for none. Operators whose
  /// operands are all One-to-One need not say so.
  std::vector<int> in_place = {};
  /// The result is operand 0 seen with other dimensions (reshape): where its memory is dense, a graph shares it and nothing is computed.
  bool is_view = false;
  bool associative = false, commutative = false, distributive = false;
};

/// The definition of an operator; built once.
const OpDefinition& definition(OpKind kind);
/// All definitions in the order of ops.inc.
std::span<const OpDefinition> all_operators();
/// By name; nothing when there is none.
const OpDefinition* find_operator(std::string_view name);

/// Validates operands and attributes against the schema, fills attribute defaults and infers outputs. Throws Error naming the operand or attribute.
Problem make_problem(const OpDefinition& op, std::vector<std::optional<TensorType>> inputs, const Attributes& attributes);
/// dense_dims of the problem's operator.
int dense_dims_of(const Problem& problem);
/// Bytes of a dense tensor at the symbols' maximum.
double bytes_of(const TensorType& type, const SymbolValues& maximum);
/// Operations and bytes of a problem at its symbols' maximum.
Cost cost_of(const Problem& problem);

}  // namespace cermet
