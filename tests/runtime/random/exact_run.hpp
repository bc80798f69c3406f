// What a graph would give if floating-point numbers had 53 bits everywhere, and how far roundings may carry results
// from that.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/buffer.hpp"
#include "graph/graph.hpp"

namespace cermet::test {

/// Elements of a graph's input or constant, from its name alone: floating-point numbers in [-1, 1], small integers,
/// truth values.
void fill_operand(const std::string& name, const TensorView& tensor);

/// Runs the references on float64 in place of every floating-point type. With a seed other than 0, each element of each
/// node's result is moved at random by up to what a kernel's result may be off: half a unit of its type in the last
/// place, and the operator's rounding depth times 2^-24 of its terms.
class ExactRun {
 public:
  ExactRun(const Graph& graph, const SymbolValues& symbols, std::uint64_t seed = 0);
  std::map<std::string, std::vector<double>> outputs() const;
  /// Of all values; infinite where one is not finite.
  double largest() const { return largest_; }

 private:
  const Graph& graph_;
  std::vector<OwnedTensor> values_;
  double largest_ = 0;
};

/// By result and element: how far a run may be from `exact`. Stochastic arithmetic (Vignes, 1993): the farthest of some
/// runs with errors as large as they may be, times `factor`, because an element's errors may cancel in each.
std::map<std::string, std::vector<double>> allowed_errors(const Graph& graph, const SymbolValues& symbols,
                                                          const std::map<std::string, std::vector<double>>& exact,
                                                          double factor);

}  // namespace cermet::test
