// Reductions along one axis that build on each other, such as a maximum and the sum of exponentials relative to it, and
// whether one pass can compute them.
//
// A consumer f reduces g(r, c), where r is what a producer has reduced. One pass meets a new r' after f has taken in
// terms of the old r. It goes on where a repair h exists with h(g(r, c), r, r') = g(r', c) that distributes over f. The
// table of g:
//   exp(c - r)            t * exp(r - r')
//   c * r, c / r, c h(r)  t * r' / r, t * r / r', t * h(r') / h(r)
//   (c - r)^2, r a mean   the merge of count, mean and squares of Chan, Golub and LeVeque
// A product of such g has the product of their repairs. All distribute over sums; factors that are positive also over
// maxima and minima.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "graph/rewrite/derive/axes.hpp"

namespace cermet {

struct RowExpr;
using RowExprPtr = std::shared_ptr<const RowExpr>;

/// What is computed for an element of a row, or for the row.
struct RowExpr {
  enum class Kind : std::uint8_t { operand, statistic, call } kind = Kind::operand;
  std::size_t index = 0;  ///< of the operand or statistic
  OpKind op{};            ///< of a call
  std::vector<RowExprPtr> operands = {};
};

/// A reduction: "r2 = sum of (..)".
struct RowStatistic {
  OpKind reduction{};
  RowExprPtr of;
  ValueId value = {};  ///< where the graph has it; ValueId{} inside a softmax
};

struct RowCascade {
  AxisList axis;                         ///< of the rows' elements
  std::vector<IndexedValue> operands;    ///< what is not taken apart; those without the axis are one number for the row
  std::vector<RowStatistic> statistics;  ///< in an order in which each needs earlier ones
  RowExprPtr result;
  std::vector<NodeId> nodes;  ///< that were taken apart
};

/// Takes apart a value along an axis: elementwise operators that lead to reductions along it, and softmax.
RowCascade read_cascade(const GraphEditor& editor, Axes& axes, const IndexedValue& value, const AxisList& axis);
/// Adds the reduction sum(result * operand) and makes it the result: a product along the axis.
void multiply_and_add(RowCascade& cascade, const IndexedValue& operand);

/// How one pass keeps every statistic: "r2 <- r2 * exp(r1 - r1') + exp(x1 - r1')"; or which one it cannot. `merges`
/// join the statistics a and b of two parts.
struct CascadeDerivation {
  bool is_online = false;
  std::vector<std::string> steps, merges;
  std::string reason;
};
CascadeDerivation derive_online(const GraphEditor& editor, const RowCascade& cascade);

/// The expression as a product: powers of factors that are not products, by their text.
std::map<std::string, int> powers_of(const RowExprPtr& expression);
std::string to_string(const RowExprPtr& expression);

/// The operand x where the result is softmax(x): exp(x - max) / sum of exp(x - max), in any spelling.
std::optional<IndexedValue> softmax_operand(const RowCascade& cascade);

}  // namespace cermet
