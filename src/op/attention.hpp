// What the attention operators share: attributes, their checks, and the attention of one query in double precision.
#pragma once

#include <functional>
#include <vector>

#include "op/schema/problem.hpp"

namespace cermet {

/// Element types of the queries of a paged cache.
inline constexpr DTypeSet attention_query_dtypes = dtypes::real | DTypeSet{DType::f8_e4m3};

/// Attributes scale, causal, window, softcap, out_dtype and return_lse.
std::vector<AttributeSpec> attention_attributes();

/// The same, read. Kernels keep it from bind to launch.
struct AttentionSettings {
  double scale;                   ///< factor of q . k; 1 / sqrt(D) where the attribute is 0
  double softcap;                 ///< 0: none
  std::int64_t window;            ///< keys that a query sees up to its own position, with that; 0: no windows
  std::int64_t window_after = 0;  ///< with a window: keys that it sees from its own position on, with that
  bool causal, return_lse;
  AttentionSettings(const Attributes& attributes, std::int64_t head_size);
};

/// Dimensions that attention has to agree on.
struct AttentionExtents {
  Dim q_heads, head_size, kv_heads, key_size, value_size;
};
/// Checks attributes, extents and the operands sinks? [Hq], alibi? [Hq].
void check_attention(const Problem& problem, const AttentionExtents& extents, std::size_t sinks, std::size_t alibi);

/// Checks attributes and the operands q [T, Hq, D], sinks? [Hq], alibi? [Hq] against `heads` of k and `head_size`;
/// returns the types of o and, if requested, lse.
std::vector<TensorType> infer_attention(const Problem& problem, const Dim& heads, const Dim& head_size, Dim value_size,
                                        std::size_t sinks, std::size_t alibi);

/// The dimension as a number; throws naming the operand where it is symbolic or outside [low, high].
std::int64_t constant_dim(const Problem& problem, std::size_t operand, int axis, std::int64_t low, std::int64_t high);

/// Keys and values that one query may look at, as functions of key index and element.
struct ReferenceKeys {
  std::int64_t count;     ///< keys 0 .. count - 1
  std::int64_t position;  ///< of the query among the keys; may be negative
  std::function<double(std::int64_t key, std::int64_t d)> key, value;
  /// A score with what operands add to it, and the magnitude of that; rounded to float32. Empty: nothing.
  std::function<std::pair<double, double>(std::int64_t key, double score)> changed = {};
};

/// Attention of one query and head: writes o[0 .. value_size) from dense index `o_index`, and lse at `lse_index` if
/// requested.
struct ReferenceQuery {
  std::int64_t q_index, o_index, lse_index;
  std::int64_t head;
  std::int64_t q_step = 1;     ///< from one element to the next
  std::int64_t head_size = 0;  ///< 0: the last dimension of q
};
void reference_attention(const ReferenceCall& call, const AttentionSettings& settings, const ReferenceQuery& query,
                         const ReferenceKeys& keys, std::size_t sinks, std::size_t alibi);

/// Longest chain of float32 roundings behind an attention result over `keys` keys; see note_magnitude in
/// reference_attention for the rest of the bound.
inline double attention_rounding_depth(std::int64_t head_size, std::int64_t keys) {
  return 2.0 * static_cast<double>(head_size + 8) + static_cast<double>(keys);
}

}  // namespace cermet
