// Rotary tables of a loaded model.
#pragma once

#include <cstdint>

#include "model/config.hpp"
#include "op/rope_table.hpp"

namespace cermet {

class RotaryTables {
 public:
  /// Tables for `positions` positions. Inverse frequencies are rounded to `frequencies` first: f32 for exact ones.
  RotaryTables(const ModelConfig& config, DType frequencies, std::int64_t positions);

  TensorView cos() const { return table_.cos.view; }  ///< f32[positions, rotary_dim / 2]
  TensorView sin() const { return table_.sin.view; }
  /// Rebuilds tables whose frequencies depend on the longest sequence (rope type "dynamic") for a pass that ends at `context` tokens. Keys already
  /// in the cache keep the rotation they got, as in other runtimes with a cache. Whether the tables changed.
  bool cover(std::int64_t context);
  /// Whether passes that end at these two lengths want different tables.
  bool would_change(std::int64_t context, std::int64_t later) const;

 private:
  RopeParameters parameters_;
  std::int64_t positions_;
  RopeTable table_;
};

}  // namespace cermet
