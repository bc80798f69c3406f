// The inner loop of attention: some rows, some keys.
#pragma once

#include "kernel/cpu/attention/state.hpp"
#include "kernel/cpu/attention/tile_attention.hpp"

namespace cermet::cpu {

/// Attends to keys begin .. end of a task whose rows are in `state`.
void attend(const AttentionSettings& settings, const AttentionShape& shape, const AttentionTask& task,
            const RowState& state, std::int64_t begin, std::int64_t end);

/// state.query[d][r] = q[r][d] * scale, for `count` rows of float32 that are `step` elements apart.
void lay_queries(const float* q, std::int64_t step, std::int64_t count, std::int64_t head_size, float scale,
                 const RowState& state);
/// o[r][d] = state.output[d][r] * share[r], for `count` rows of float32 that are `step` elements apart.
void store_outputs(const RowState& state, const float* share, std::int64_t count, std::int64_t value_size, float* o,
                   std::int64_t step);

}  // namespace cermet::cpu
