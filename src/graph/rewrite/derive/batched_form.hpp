// A flash_attention of a batch of sequences by the axes of its operands.
#pragma once

#include "graph/rewrite/derive/attention_layouts.hpp"
#include "op/attention_layout.hpp"

namespace cermet {

struct BatchedForm {
  AxisList sequences, heads, group, queries, keys, elements, value_elements;  ///< heads: of keys; queries have groups
  IndexedValue q, k, v, o;
  std::optional<IndexedValue> bias, mask;

  /// Of the scores: an operand that broadcasts to them.
  std::vector<AxisList> scores() const { return {sequences, joined_axes({&heads, &group}), queries, keys}; }
};

/// Nothing where it is another operator, or its sequences stand one after the other.
std::optional<BatchedForm> batched_form(const GraphEditor& editor, Axes& axes, NodeId attention);

/// The attributes but one, whose default holds then.
Attributes without(const Attributes& attributes, std::string_view name);
/// The node's operands, as many as the schema has.
std::vector<ValueId> attention_operands(const GraphEditor& editor, NodeId attention);
/// Puts a flash_attention with other operands and attributes in the place of a node, whose results it takes over, and
/// takes out what nothing reads any more.
void replace_attention(GraphEditor& editor, NodeId attention, const std::vector<ValueId>& operands,
                       const Attributes& attributes);

}  // namespace cermet
