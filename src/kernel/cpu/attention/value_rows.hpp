// Values of a paged cache in columns, put in rows for the tasks of a launch, which read rows.
#pragma once

#include "kernel/cpu/attention/tile_attention.hpp"
#include "kernel/kernel.hpp"

namespace cermet::cpu {

class ValueRows {
 public:
  /// Bytes of the workspace for a problem of incre_flash_attention: none for values in rows.
  static std::int64_t bytes(const Problem& problem);

  ValueRows(const LaunchArgs& args, std::byte* workspace);
  bool any() const { return columns_.shape.rank() == 5; }
  /// Puts the values of all contexts in rows.
  void fill() const;
  KeyRows of(std::int64_t sequence, std::int64_t head) const;

 private:
  void fill(std::int64_t sequence, std::int64_t head) const;
  std::int64_t first_of(std::int64_t sequence, std::int64_t head) const { return (sequence * heads_ + head) * tokens_; }

  const LaunchArgs& args_;
  const TensorView& columns_;
  std::int64_t heads_ = 0, size_ = 0, block_ = 0, tokens_ = 0;  ///< size: of a value; tokens: of a sequence, at most
  std::byte* rows_ = nullptr;                                   ///< [sequences, heads, tokens, size]
  float* scales_ = nullptr;  ///< [sequences, heads, tokens], where tokens have scales
};

}  // namespace cermet::cpu
