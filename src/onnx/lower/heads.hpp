// Attention of the com.microsoft operators: heads, masks and caches in the layouts that they share.
#pragma once

#include "onnx/lowering.hpp"

namespace cermet::onnx {

/// Queries [B, S, Hq, D] and keys and values, [B, T, Hkv, D] or, where `heads_first`, [B, Hkv, T, D].
struct Heads {
  Operand q, k, v;
  bool heads_first = false;
  Operand bias = {}, mask = {},
          sinks =
              {};  ///< added to scores; true where a key is seen; [Hq], a score in the denominator alone. May be none
  bool causal = false;            ///< the last query stands at the last key
  std::int64_t window = 0;        ///< positions that a query sees, itself included; 0: all
  double scale = 0, softcap = 0;  ///< scale 0: 1 / sqrt(D)
};

/// What a result of scores shows, beside the attention itself: what goes into the softmax, 0 or the lowest number where
/// a query does not see a key, or what comes out of it.
enum class Scores { or_zero, or_lowest, probabilities };

/// Attention, [B, S, Hq * Dv].
Operand attended(Lowering& l, const Heads& heads);
/// The same with scores [B, Hq, S, T] as a second result; computed step by step.
std::pair<Operand, Operand> attended_with_scores(Lowering& l, Heads heads, Scores shown);

/// [B, S, H * D] as [B, S, H, D].
Operand split_last(Lowering& l, Operand x, std::int64_t heads);
/// [B, S, H, D] as [B, H, S, D] and back.
Operand swap_heads(Lowering& l, Operand x);
/// Adds past [B, Hkv, P, D] before keys and values, which then have their heads first.
void prepend_past(Lowering& l, Heads& heads, Operand past_key, Operand past_value);

/// What mask_index or key_padding_mask adds to the scores: 0 where a key is seen, else attribute mask_filter_value.
/// Kinds: lengths [B], ends and starts [2 * B], flags [B, T], [B, S, T] or [B, 1, M, M].
Operand mask_bias(Lowering& l, Operand mask, const Heads& heads);
/// The sum of two biases, either of which may be none.
Operand added_bias(Lowering& l, Operand a, Operand b);

/// Whether sizes are equal: numbers where one is a symbol that the other does not say.
bool same_size(Lowering& l, const Dim& a, const Dim& b);

/// 0, 1, .. as i64 [count], for numbers of positions.
Operand counted(Lowering& l, std::int64_t count);

/// x [.., R'] whose first R elements are turned by the angles whose cosines and sines are [.., R / 2]; the rest stays.
Operand rotated(Lowering& l, Operand x, Operand cos, Operand sin, bool interleaved);

/// x [.., K] times [K, N], plus bias [N] or nothing.
Operand projected(Lowering& l, Operand x, Operand weight, Operand bias);

}  // namespace cermet::onnx
