// Operands that change the scores of a tile of keys: biases and masks.
#if defined(CERMET_SCORES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CERMET_SCORES_INL
#undef CERMET_SCORES_INL
#else
#define CERMET_SCORES_INL
#endif

#include "kernel/cpu/attention/attend.hpp"
#include "kernel/cpu/vec-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {

/// Adds to one key's scores of all rows.
HWY_INLINE void add_to_rows(float* s, std::int64_t rows, Floats added) {
  for (std::int64_t r = 0; r < rows; r += static_cast<std::int64_t>(lanes())) store(hn::Add(load(s + r), added), s + r);
}

/// Adds the bias of keys begin .. begin + count to s[count][rows].
inline void add_bias(float* s, const AttentionShape& shape, const AttentionTask& task, const RowState& state, std::int64_t begin, std::int64_t count) {
  const ScoreOperand& bias = task.bias;
  const std::byte* from = bias.data + begin * bias.key_step;
  const auto is_dense = [&](const std::int64_t step) { return step == shape.bias_bytes; };
  if (is_dense(bias.key_step) && shape.bias_bytes == 4 && (bias.token_step != 0 || bias.head_step != 0)) {
    const hn::RebindToSigned<FloatTag> ints;
    const auto* rows_of = reinterpret_cast<const float*>(from);
    for (std::int64_t r = 0; r < state.rows; r += static_cast<std::int64_t>(lanes())) {
      const auto offset = hn::LoadU(ints, state.bias_offset + r);
      for (std::int64_t j = 0; j < count; ++j) {
        float* score = s + j * state.rows + r;
        store(hn::Add(load(score), hn::GatherIndex(FloatTag(), rows_of + j, offset)), score);
      }
    }
    return;
  }
  float run[key_tile];
  const auto read = [&](const std::byte* row) {
    if (is_dense(bias.key_step)) return shape.bias_to_float(row, reinterpret_cast<std::byte*>(run), count);
    for (std::int64_t j = 0; j < count; ++j) shape.bias_to_float(row + j * bias.key_step, reinterpret_cast<std::byte*>(run + j), 1);
  };
  if (bias.token_step == 0 && bias.head_step == 0) {
    read(from);
    for (std::int64_t j = 0; j < count; ++j) add_to_rows(s + j * state.rows, state.rows, hn::Set(FloatTag(), run[j]));
    return;
  }
  for (std::int64_t r = 0; r < task.tokens * shape.group; ++r) {
    read(from + r / shape.group * bias.token_step + r % shape.group * bias.head_step);
    for (std::int64_t j = 0; j < count; ++j) s[j * state.rows + r] += run[j];
  }
}

/// Scores of keys that the mask excludes become masked_score.
inline void mask_by_operand(float* s, const AttentionShape& shape, const AttentionTask& task, const RowState& state, std::int64_t begin, std::int64_t count) {
  const ScoreOperand& mask = task.mask;
  const bool same_rows = mask.token_step == 0 && mask.head_step == 0;
  for (std::int64_t r = 0; r < (same_rows ? 1 : task.tokens * shape.group); ++r) {
    const std::byte* row = mask.data + r / shape.group * mask.token_step + r % shape.group * mask.head_step + begin * mask.key_step;
    for (std::int64_t j = 0; j < count; ++j) {
      if (row[j * mask.key_step] != std::byte{0}) continue;
      if (same_rows) std::fill_n(s + j * state.rows, state.rows, shape.masked_score);
      else s[j * state.rows + r] = shape.masked_score;
    }
  }
}

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
