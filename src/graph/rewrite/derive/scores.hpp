// Scores as a normal form: a product of two operands along an axis, times a number, plus terms that broadcast, where a
// mask is true.
#pragma once

#include <string>

#include "graph/rewrite/derive/axes.hpp"

namespace cermet {

/// A value that takes part in the scores; it broadcasts over the axes that it does not have.
struct ScoreTerm {
  IndexedValue value;
  double factor = 1;      ///< of a bias
  bool inverted = false;  ///< of a mask: true where a key is not seen
};

/// where(masks, factor * sum over `reduced` of left * right + sum of biases, masked_score)
struct Scores {
  IndexedValue left, right;
  AxisList reduced;
  double factor = 1;
  std::vector<ScoreTerm> biases, masks;
  double masked_score = 0;
  std::vector<NodeId> nodes;  ///< that make them, the product included
};

/// The normal form of a value with these axes; else why it has none.
struct ScoresOrReason {
  std::optional<Scores> scores;
  std::string reason;
};
ScoresOrReason find_scores(const GraphEditor& editor, Axes& axes, const IndexedValue& value);

/// The only element of a floating constant whose data the graph holds.
std::optional<double> number_of(const GraphEditor& editor, ValueId id);

/// The number that every element of a constant is, if that is easily seen: exporters write masks that hide nothing.
std::optional<double> uniform_of(const GraphEditor& editor, ValueId id);

/// Operands of a matmul by the axes of its result; `reduced` becomes the axis that is summed over.
std::optional<std::pair<IndexedValue, IndexedValue>> factors_of(const GraphEditor& editor, Axes& axes, NodeId matmul,
                                                                const IndexedValue& result, AxisList& reduced);

/// Follows views and products with numbers back, whose numbers go into `factor`.
IndexedValue scaled_source(const GraphEditor& editor, Axes& axes, IndexedValue value, double& factor);

}  // namespace cermet
