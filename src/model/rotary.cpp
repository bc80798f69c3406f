#include "model/rotary.hpp"

namespace cermet {

RotaryTables::RotaryTables(const ModelConfig& config, DType frequencies, std::int64_t positions,
                           std::int64_t pass_tokens)
    : parameters_(config.rope), positions_(positions) {
  if (frequencies != DType::f32) parameters_.round_frequencies_to = frequencies;
  frequencies_ = rotary_frequencies(parameters_);
  const std::int64_t rows = positions + (follows_length(parameters_) ? pass_tokens : 0),
                     half = std::ssize(frequencies_.inverse);
  table_ = {OwnedTensor(DType::f32, {rows, half}), OwnedTensor(DType::f32, {rows, half})};
  for (std::int64_t position = 0; position < positions; ++position) fill(position, position, position + 1);
  for (std::int64_t row = positions; row < rows; ++row) fill(row, 0, 1);
}

void RotaryTables::fill(std::int64_t row, std::int64_t position, std::int64_t length) {
  if (frequency_length(parameters_, length) != frequency_length(parameters_, parameters_.sequence_length)) {
    parameters_.sequence_length = length;
    frequencies_ = rotary_frequencies(parameters_);
  }
  const std::int64_t half = std::ssize(frequencies_.inverse);
  write_rope_row(frequencies_, position, table_.cos.view.as<float>() + row * half,
                 table_.sin.view.as<float>() + row * half);
}

std::int32_t RotaryTables::row(std::int64_t position, std::int64_t length) {
  if (frequency_length(parameters_, length) == frequency_length(parameters_, position + 1))
    return static_cast<std::int32_t>(position);
  const std::int64_t row = positions_ + filled_++;
  CERMET_ASSERT(row < rows());
  fill(row, position, length);
  return static_cast<std::int32_t>(row);
}

}  // namespace cermet
