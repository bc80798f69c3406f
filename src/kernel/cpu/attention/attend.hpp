// The inner loop of attention: some rows, some keys.
#pragma once

#include "kernel/cpu/attention/attention.hpp"
#include "kernel/cpu/attention/state.hpp"

namespace cermet::cpu {

/// Attends to keys begin .. end of a task whose rows are in `state`.
void attend(const AttentionSettings& settings, const AttentionShape& shape, const AttentionTask& task, const RowState& state, std::int64_t begin,
            std::int64_t end);

}  // namespace cermet::cpu
