// What an operator is: schema, shape inference, mapping types, reference, cost and cases. `ops.inc` lists all of them.
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "op/schema/case.hpp"
#include "op/schema/problem.hpp"

namespace cermet {

/// How an output's elements read an operand's elements (after DNNFusion, PLDI 2021); asked per operand by the fusion
/// planner.
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

/// What an operator's file gives as define_NAME().
struct OpSpec {
  std::string_view category = {};  ///< heading in docs and `cermet ops`
  std::string_view summary;        ///< one line
  std::string_view semantics;      ///< what exactly is computed: formula, rounding, corner cases
  std::vector<OperandSpec> inputs, outputs;
  std::vector<AttributeSpec> attributes = {};
  /// Output types from input types; throws Error naming the operand. Dtypes and attribute names were checked before.
  std::function<std::vector<TensorType>(const Problem&)> infer;
  /// Plain C++ with double accumulation: the definition.
  std::function<void(const ReferenceCall&)> reference;
  /// Arithmetic operations; where empty, none: elements are moved, and nothing is rounded.
  std::function<double(const Problem&)> operations = {};
  /// Bytes moved; where empty, the sum of all operands and results.
  std::function<double(const Problem&)> bytes = {};
  /// Longest chain of float32 roundings behind a result: K for a product; 8 where empty. Scales the error bound of
  /// kernels.
  std::function<double(const Problem&)> rounding_depth = {};
  /// Largest difference, in quantization steps, that integer and fp8 results may show. 0: exact.
  int integer_slack = 0;
  std::function<std::vector<Case>()> cases;
  /// How many trailing dimensions of every operand and result are dense among themselves; 1 where empty. Operators
  /// check it where views arrive.
  std::function<int(const Problem&)> dense_dims = {};
  /// Output i shares the memory of the input that aliases[i] names; -1 for none. Shorter than outputs means none.
  std::vector<int> aliases = {};
  /// Input that output i may coincide with exactly, because every kernel reads an element's row before it writes it; -1
  /// for none. Operators whose operands are all One-to-One need not say so.
  std::vector<int> in_place = {};
  /// The result is operand 0 seen with other dimensions (reshape): where its memory is dense, a graph shares it and
  /// nothing is computed.
  bool is_view = false;
  bool associative = false, commutative = false, distributive = false;
};

/// A row of ops.inc gives kind and name.
struct OpDefinition : Operator, OpSpec {};

/// All definitions in the order of ops.inc.
std::span<const OpDefinition> all_operators();

}  // namespace cermet
