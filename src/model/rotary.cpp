#include "model/rotary.hpp"

#include <cstring>

namespace cermet {

RotaryTables::RotaryTables(const ModelConfig& config, DType frequencies, std::int64_t positions) : parameters_(config.rope), positions_(positions) {
  if (frequencies != DType::f32) parameters_.round_frequencies_to = frequencies;
  table_ = make_rope_table(parameters_, positions);
}

bool RotaryTables::would_change(std::int64_t context, std::int64_t later) const {
  return frequency_length(parameters_, context) != frequency_length(parameters_, later);
}

bool RotaryTables::cover(std::int64_t context) {
  if (frequency_length(parameters_, context) == frequency_length(parameters_, parameters_.sequence_length)) return false;
  parameters_.sequence_length = context;
  const RopeTable made = make_rope_table(parameters_, positions_);
  // The executables hold the tables' addresses, so their memory stays.
  std::memcpy(table_.cos.view.data, made.cos.view.data, static_cast<std::size_t>(made.cos.memory.size()));
  std::memcpy(table_.sin.view.data, made.sin.view.data, static_cast<std::size_t>(made.sin.memory.size()));
  return true;
}

}  // namespace cermet
