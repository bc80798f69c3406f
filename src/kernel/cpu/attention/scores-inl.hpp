// Operands that change the scores of a tile of keys: biases and masks.
#if defined(CERMET_SCORES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CERMET_SCORES_INL
#undef CERMET_SCORES_INL
#else
#define CERMET_SCORES_INL
#endif

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <limits>

#include "kernel/cpu/attention/attend.hpp"
#include "kernel/cpu/vec-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {

/// Adds to one key's scores of all rows.
HWY_INLINE void add_to_rows(float* s, std::int64_t rows, Floats added) {
  for (std::int64_t r = 0; r < rows; r += static_cast<std::int64_t>(lanes())) store(hn::Add(load(s + r), added), s + r);
}

/// Row r of a task in an operand with rows for tokens, or heads.
HWY_INLINE std::int64_t row_offset(const ScoreOperand& x, std::int64_t r, std::int64_t group) {
  return r / group * x.token_step + r % group * x.head_step;
}

/// Whether offsets of a task's rows fit what gathers take.
HWY_INLINE bool has_short_offsets(const ScoreOperand& x, std::int64_t tokens, std::int64_t group) {
  return (tokens - 1) * std::abs(x.token_step) + (group - 1) * std::abs(x.head_step) <=
         std::numeric_limits<std::int32_t>::max();
}

/// s[j][r + i] += rows[i * step + j] for a vector of rows and `count` keys.
HWY_INLINE void add_rows(float* s, std::int64_t state_rows, const float* rows,
                         hn::Vec<hn::RebindToSigned<FloatTag>> offset, std::int64_t count) {
  for (std::int64_t j = 0; j < count; ++j) {
    float* score = s + j * state_rows;
    store(hn::Add(load(score), hn::GatherIndex(FloatTag(), rows + j, offset)), score);
  }
}

/// Adds the bias of keys begin .. begin + count to s[count][rows].
inline void add_bias(float* s, const AttentionShape& shape, const AttentionTask& task, const RowState& state,
                     std::int64_t begin, std::int64_t count) {
  const hn::RebindToSigned<FloatTag> ints;
  const ScoreOperand& bias = task.bias;
  const std::byte* from = bias.data + begin * bias.key_step;
  const auto vector = static_cast<std::int64_t>(lanes()), used = task.tokens * shape.group;
  const bool dense = bias.key_step == shape.bias_bytes, same_rows = bias.token_step == 0 && bias.head_step == 0;
  if (dense && shape.bias_bytes == 4 && !same_rows && has_short_offsets(bias, task.tokens, shape.group)) {
    for (std::int64_t r = 0; r < state.rows; r += vector)
      add_rows(s + r, state.rows, reinterpret_cast<const float*>(from), hn::LoadU(ints, state.bias_offset + r), count);
    return;
  }
  const auto read = [&](const std::byte* row, float* run) {
    if (dense) return shape.bias_to_float(row, reinterpret_cast<std::byte*>(run), count);
    for (std::int64_t j = 0; j < count; ++j)
      shape.bias_to_float(row + j * bias.key_step, reinterpret_cast<std::byte*>(run + j), 1);
  };
  float run[hn::MaxLanes(FloatTag()) * key_tile];
  if (same_rows) {
    read(from, run);
    for (std::int64_t j = 0; j < count; ++j) add_to_rows(s + j * state.rows, state.rows, hn::Set(FloatTag(), run[j]));
    return;
  }
  const auto offset = hn::Mul(hn::Iota(ints, 0), hn::Set(ints, static_cast<std::int32_t>(key_tile)));
  std::fill(std::begin(run), std::end(run), 0.0f);  // of rows that are none
  for (std::int64_t r = 0; r < used; r += vector) {
    for (std::int64_t i = 0; i < std::min(vector, used - r); ++i)
      read(from + row_offset(bias, r + i, shape.group), run + i * key_tile);
    add_rows(s + r, state.rows, run, offset, count);
  }
}

/// Scores of keys that the mask excludes become masked_score.
inline void mask_by_operand(float* s, const AttentionShape& shape, const AttentionTask& task, const RowState& state,
                            std::int64_t begin, std::int64_t count) {
  const ScoreOperand& mask = task.mask;
  const std::byte* from = mask.data + begin * mask.key_step;
  const std::int64_t used = task.tokens * shape.group;
  if (mask.token_step == 0 && mask.head_step == 0) {
    for (std::int64_t j = 0; j < count; ++j)
      if (from[j * mask.key_step] == std::byte{0}) std::fill_n(s + j * state.rows, state.rows, shape.masked_score);
    return;
  }
  const auto mask_keys = [&](std::int64_t r, std::int64_t first) {  // one row
    const std::byte* row = from + row_offset(mask, r, shape.group);
    for (std::int64_t j = first; j < count; ++j)
      if (row[j * mask.key_step] == std::byte{0}) s[j * state.rows + r] = shape.masked_score;
  };
  const auto vector = static_cast<std::int64_t>(lanes());
  // Keys that are read four at a time, as the bytes of a word, which gathers of these instruction sets take from any
  // address.
  const bool words =
      HWY_TARGET <= HWY_AVX2 && HWY_ARCH_X86 && mask.key_step == 1 && has_short_offsets(mask, task.tokens, shape.group);
  const std::int64_t whole = words ? count / 4 * 4 : 0;
  const hn::RebindToSigned<FloatTag> ints;
  const auto masked = hn::Set(FloatTag(), shape.masked_score);
  for (std::int64_t r = 0; whole > 0 && r < used; r += vector) {
    HWY_ALIGN std::int32_t offsets[hn::MaxLanes(FloatTag())];
    for (std::int64_t i = 0; i < vector; ++i)
      offsets[i] = static_cast<std::int32_t>(row_offset(mask, std::min(r + i, used - 1), shape.group));
    const auto offset = hn::Load(ints, offsets);
    for (std::int64_t j = 0; j < whole; j += 4) {
      const auto word = hn::GatherOffset(ints, reinterpret_cast<const std::int32_t*>(from + j), offset);
      for (int b = 0; b < 4; ++b) {
        float* score = s + (j + b) * state.rows + r;
        const auto excluded = hn::RebindMask(
            FloatTag(),
            hn::Eq(hn::And(word, hn::Set(ints, static_cast<std::int32_t>(0xffu << (8 * b)))), hn::Zero(ints)));
        store(hn::IfThenElse(excluded, masked, load(score)), score);
      }
    }
  }
  for (std::int64_t r = 0; r < used && whole < count; ++r) mask_keys(r, whole);
}

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
