// Operands of attention that hold a batch of sequences of one length: where each layout keeps the axes.
#pragma once

#include "op/operands.hpp"
#include "op/schema/problem.hpp"

namespace cermet {

/// Axes of an operand of rank 4 by what they count; the batch is axis 0.
struct AttentionAxes {
  int tokens, heads, size;
  /// "bshd", "bhsd" or "bhds": batch, heads, tokens (s) and elements (d) in their order.
  explicit AttentionAxes(std::string_view layout);
};

/// Operands and layouts of a flash_attention of rank 4.
struct BatchedAttention {
  AttentionAxes q, k, v, o;
  explicit BatchedAttention(const Attributes& attributes);
  /// Whether a flash_attention is one; else its sequences stand one after the other.
  static bool is(const Problem& problem) {
    return problem.op->kind == OpKind::flash_attention && problem.input(op::flash_attention::q).rank() == 4;
  }
};

/// Attributes q_layout, k_layout, v_layout, o_layout, masked_score and empty_rows.
std::vector<AttributeSpec> batched_attention_attributes();
/// Checks operands of rank 4; returns the types of o and, if requested, lse.
std::vector<TensorType> infer_batched_attention(const Problem& problem);
/// Keys of a sequence, of `keys` in memory; null for all. Throws Error where there are not so many.
std::int64_t attention_length(const TensorView* lengths, std::int64_t sequence, std::int64_t keys);
/// Attention of every query in double precision.
void reference_batched_attention(const ReferenceCall& call);
/// Cases of rank 4.
void add_batched_attention_cases(std::vector<Case>& list);

}  // namespace cermet
