// What rules do to a graph.
#pragma once

#include "graph/rewrite/rule.hpp"

namespace cermet {

/// The rule of a row of texts: "before -> after".
Rule text_rule(std::string_view name, RoundingClass rounding, std::string_view text, bool (*fits)(const Match&),
               Attributes (*attributes)(const Match&));

/// A row of algebra: a file below rules/ has those of one class.
struct AlgebraRow {
  std::string_view name;
  RoundingClass rounding;      ///< of floating types; integers keep their bits
  std::string_view text;       ///< "mul(mul(x, c1#), c2#) -> mul(x, [c1 * c2])"
  std::string_view when = {};  ///< as Condition::parse reads it
  bool (*fits)(const Match&) = nullptr;
  Attributes (*attributes)(const Match&) = nullptr;  ///< of the new nodes; without it, those of the pattern's nodes of
                                                     ///< the same operator, which must be alike
};
Rule algebra_rule(const AlgebraRow& row, RuleClass rule_class);

std::span<const AlgebraRow> associative_rules();
std::span<const AlgebraRow> commutative_rules();
std::span<const AlgebraRow> distributive_rules();
std::span<const AlgebraRow> identity_rules();
std::span<const AlgebraRow> lattice_rules();
std::span<const AlgebraRow> power_rules();
std::span<const AlgebraRow> reduction_rules();
std::span<const AlgebraRow> movement_rules();
std::span<const AlgebraRow> product_rules();
std::span<const AlgebraRow> activation_rules();
std::span<const AlgebraRow> norm_rules();
std::span<const AlgebraRow> group_norm_rules();

/// x * cos + rotated(x) * sin, with tables that have the same element for both of a pair: rope. A rule of class fast
/// takes 16 bits, too.
bool raise_rope(const Rule& rule, GraphEditor& editor, NodeId anchor);
/// Products of one operand with weights: one product with the weights stacked, and its columns split.
bool stack_linears(const Rule& rule, GraphEditor& editor, NodeId anchor);

/// A reshape of a product's rows: the product of its reshaped operand.
bool part_rows_before_linear(const Rule& rule, GraphEditor& editor, NodeId anchor);
/// A quantization and its inverse after a reshape or a transpose: before it.
bool quantize_before_movement(const Rule& rule, GraphEditor& editor, NodeId anchor);

/// Gathers of single indices from a transposed reshape of x: columns of x.
bool split_gathers(const Rule& rule, GraphEditor& editor, NodeId anchor);
/// Slices that share out all columns of x: a split.
bool split_slices(const Rule& rule, GraphEditor& editor, NodeId anchor);

/// Numbers that a widened condition chooses: numbers that the narrow one chooses, widened.
bool choose_once(const Rule& rule, GraphEditor& editor, NodeId anchor);

/// Rows of a product that change their places before they are added to others: the product of rows that have changed
/// theirs.
bool move_rows_before_linear(const Rule& rule, GraphEditor& editor, NodeId anchor);
/// Normalized rows that change their places before a product: rows that are normalized where they come to be.
bool move_rows_before_norm(const Rule& rule, GraphEditor& editor, NodeId anchor);

/// A convolution with few channels whose windows lie side by side: a product of windows, moved to rows.
bool multiply_patches(const Rule& rule, GraphEditor& editor, NodeId anchor);

/// Transpositions on both sides of a reshape that leave all elements where they were: a reshape.
bool cancel_transposes(const Rule& rule, GraphEditor& editor, NodeId anchor);
/// A product of transposed columns: that of the columns as they were, with the columns of its weight in their order.
bool transpose_weight(const Rule& rule, GraphEditor& editor, NodeId anchor);

/// A product of a softmax of scores: attention, derived as graph/rewrite/derive/attention_form.hpp says. A rule of
/// class fast takes rounded scores, too.
bool derive_attention(const Rule& rule, GraphEditor& editor, NodeId anchor);
/// Transposes and reshapes around attention: its layouts; keys and values that were repeated: groups of heads.
bool read_attention_in_place(const Rule& rule, GraphEditor& editor, NodeId anchor);
/// A mask that compares places of queries and keys: causal, a window, lengths of the sequences.
bool find_attention_keys(const Rule& rule, GraphEditor& editor, NodeId anchor);
/// A bias of zeros and of scores that exclude keys: a mask.
bool mask_in_place_of_bias(const Rule& rule, GraphEditor& editor, NodeId anchor);

}  // namespace cermet
