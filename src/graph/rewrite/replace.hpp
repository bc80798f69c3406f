// What rules do to a graph.
#pragma once

#include "graph/rewrite/rule.hpp"

namespace cermet {

/// The rule of a row of texts: "before -> after".
Rule text_rule(std::string_view name, RoundingClass rounding, std::string_view text, bool (*fits)(const Match&), Attributes (*attributes)(const Match&));

/// Products of one operand with weights: one product with the weights stacked, and its columns split.
bool stack_linears(const Rule& rule, GraphEditor& editor, NodeId anchor);

/// A reshape of a product's rows: the product of its reshaped operand.
bool part_rows_before_linear(const Rule& rule, GraphEditor& editor, NodeId anchor);

/// A product of a softmax of scores: attention, derived as graph/rewrite/derive/attention.hpp says. A rule of class fast takes rounded scores, too.
bool derive_attention(const Rule& rule, GraphEditor& editor, NodeId anchor);

}  // namespace cermet
