// Attention by algebra: scores in their normal form, a cascade of reductions that is a softmax, and a product along the
// same axis.
#pragma once

#include "graph/rewrite/derive/cascade.hpp"
#include "graph/rewrite/derive/scores.hpp"

namespace cermet {

/// A matmul that ends an attention. Every axis is batch (of q, k and v), query (of q alone), key (summed by the
/// matmul), element or value.
struct AttentionForm {
  Scores scores;                ///< left is q, right is k
  IndexedValue values, result;  ///< result: of the matmul
  AxisList batch, queries, keys, elements, value_elements;
  std::vector<NodeId> nodes;       ///< from the first product to the matmul; nothing else reads what they make
  std::vector<std::string> steps;  ///< how it was derived, one line each
};

/// The attention that this matmul ends; else why there is none. `any_type`: also where values in between are rounded to
/// 16 bits.
struct AttentionOrReason {
  std::optional<AttentionForm> form;
  std::string reason;
};
AttentionOrReason derive_attention(const GraphEditor& editor, Axes& axes, NodeId matmul, bool any_type);

/// Puts one flash_attention in the place of a derived one, with the views around it as layouts. False where an operand
/// can be laid out in no way.
bool place_attention(GraphEditor& editor, Axes& axes, const AttentionForm& form);

}  // namespace cermet
