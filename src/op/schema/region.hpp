// What one kernel computes: operators of known types and how they are wired. A single operator is a region of one node.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "op/schema/problem.hpp"

namespace cermet {

/// How a value is rounded that goes from one node of a region to another and never reaches memory.
enum class Rounding : std::uint8_t {
  unset,   ///< no contract: find_fault() refuses the region
  strict,  ///< to the value's element type, as the unfused graph rounds it
  fast,    ///< to float32
};
std::string_view name_of(Rounding rounding);

/// Where an operand of a node comes from.
struct RegionInput {
  enum class From : std::uint8_t { nowhere, outside, inside };
  From from = From::nowhere;            ///< nowhere: the operand is not given
  std::int32_t index = -1;              ///< outside: an operand of the region; inside: a node before this one
  std::int32_t output = 0;              ///< inside: which of that node's results
  Rounding rounding = Rounding::unset;  ///< inside: the edge's contract

  static RegionInput outside(std::size_t operand) {
    return {From::outside, static_cast<std::int32_t>(operand), 0, Rounding::unset};
  }
  static RegionInput inside(std::size_t node, std::size_t output, Rounding rounding) {
    return {From::inside, static_cast<std::int32_t>(node), static_cast<std::int32_t>(output), rounding};
  }
  bool is_inside() const { return from == From::inside; }
  friend bool operator==(const RegionInput&, const RegionInput&) = default;
};

struct RegionNode {
  Problem problem;
  std::vector<RegionInput> inputs;  ///< one for each of the problem's
};

/// An operand or a result of a node: of an operand of the region, the first that reads it.
struct RegionPlace {
  std::int32_t node = 0, index = 0;
  friend bool operator==(const RegionPlace&, const RegionPlace&) = default;
};

/// A directed acyclic graph of operators that one kernel computes. A launch gets `operands` as its inputs and `results`
/// as its outputs, in this order.
struct Region {
  std::vector<RegionNode> nodes;  ///< in an order in which they can run
  std::int32_t anchor = 0;        ///< the node whose kernels are asked and whose family gives the loops: a product, an
                                  ///< attention, a row reduction
  std::vector<RegionPlace> operands;  ///< what comes from outside
  std::vector<RegionPlace> results;   ///< what leaves; a value that other nodes read may leave, too

  Region() = default;
  /// A single operator: operands, given or not, and results are the schema's.
  Region(Problem problem);  // NOLINT(google-explicit-constructor): a problem is a region of one node

  /// The anchor's problem.
  const Problem& problem() const { return nodes[static_cast<std::size_t>(anchor)].problem; }
  bool is_single() const { return nodes.size() == 1; }
  const Target* target() const { return problem().target; }
  const SymbolValues& maximum() const { return problem().maximum; }
  void set_target(const Target* target);
  void set_maximum(const SymbolValues& maximum);

  bool has(std::size_t operand) const {
    return problem_at(operands[operand]).has(static_cast<std::size_t>(operands[operand].index));
  }
  /// Whether an operand is known before the first run.
  bool is_constant(std::size_t operand) const {
    return problem_at(operands[operand]).is_constant(static_cast<std::size_t>(operands[operand].index));
  }
  const TensorType& operand_type(std::size_t operand) const {
    return problem_at(operands[operand]).input(static_cast<std::size_t>(operands[operand].index));
  }
  const TensorType& result_type(std::size_t result) const {
    return problem_at(results[result]).outputs[static_cast<std::size_t>(results[result].index)];
  }
  /// Which operand of the region operand `input` of a node is; nothing where it is not given or comes from another
  /// node.
  std::optional<std::size_t> operand_of(std::size_t node, std::size_t input) const;
  /// The same for the anchor.
  std::optional<std::size_t> operand_of(std::size_t input) const {
    return operand_of(static_cast<std::size_t>(anchor), input);
  }

  std::string operators() const;  ///< "rms_norm + linear"
  /// For readers: of a single operator the problem's text; of more
  /// `{n0 = rms_norm($0: f32[1, 64]) {eps = 1e-06}; n1 = linear(strict n0, $1: bf16[32, 64]) {out_dtype = ""}} anchor
  /// n1 -> n1`.
  std::string to_string() const;
  /// The text with all else that a kernel's choice may depend on: constants, the symbols' maxima, the device.
  std::string key() const;

 private:
  const Problem& problem_at(const RegionPlace& place) const {
    return nodes[static_cast<std::size_t>(place.node)].problem;
  }
};

/// What is wrong with a region's form, naming the node; nothing where it is sound.
std::optional<std::string> find_fault(const Region& region);
/// Throws Error(internal) where something is.
void verify(const Region& region);

/// Operations and bytes at the symbols' maximum: what stays inside moves no bytes, and an operand that several nodes
/// read is read once.
Cost cost_of(const Region& region);
/// How many trailing dimensions of every operand and result are dense among themselves.
int dense_dims_of(const Region& region);

}  // namespace cermet
