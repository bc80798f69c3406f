// Rotary tables of a loaded model.
#pragma once

#include <cstdint>

#include "model/config.hpp"
#include "op/rope_table.hpp"

namespace cermet {

/// Cosines and sines by row. Row p below `positions` holds the rotation of position p as a sequence's last token has
/// it, so that a decoding step needs no other. Where frequencies depend on the length of the sequence, the tokens of a
/// longer text all rotate with those of its whole length, as in one pass of transformers; they get rows of their own
/// after these, which a pass fills. Keys in the cache keep the rotation that they got.
class RotaryTables {
 public:
  /// Tables for `positions` positions and passes of up to `pass_tokens` tokens. Inverse frequencies are rounded to
  /// `frequencies` first: f32 for exact ones.
  RotaryTables(const ModelConfig& config, DType frequencies, std::int64_t positions, std::int64_t pass_tokens);

  TensorView cos() const { return table_.cos.view; }  ///< f32[rows, rotary_dim / 2]
  TensorView sin() const { return table_.sin.view; }
  std::int64_t rows() const { return cos().shape[0]; }

  /// Begins a pass: rows that earlier ones filled are free again.
  void begin_pass() { filled_ = 0; }
  /// The row of a token at `position` of a text that brings its sequence to `length` tokens.
  std::int32_t row(std::int64_t position, std::int64_t length);
  /// Rows that this pass has filled, from `positions` on.
  std::int64_t filled() const { return filled_; }
  std::int64_t positions() const { return positions_; }

 private:
  void fill(std::int64_t row, std::int64_t position, std::int64_t length);

  RopeParameters parameters_;
  std::int64_t positions_, filled_ = 0;
  RotaryFrequencies frequencies_;  ///< of parameters_.sequence_length
  RopeTable table_;
};

}  // namespace cermet
