// Where the keys or values of one tile lie: kernels read them in place, whatever the pages.
#pragma once

#include "kernel/cpu/attention/state.hpp"

namespace cermet::cpu {

/// Calls body(i, count, data, scale) for the runs of rows begin + i .. begin + i + count that share a page; `scale` is
/// that of the first, or null.
template <class Body>
void for_runs(const KeyRows& rows, std::int64_t begin, std::int64_t end, Body&& body) {
  for (std::int64_t j = begin; j < end;) {
    const std::int64_t page = rows.table ? rows.table[j / rows.block] : 0, offset = rows.table ? j % rows.block : j;
    const std::int64_t count = rows.table ? std::min(end - j, rows.block - offset) : end - j;
    const float* scale = rows.scale ? rows.scale + page * rows.scale_page_step + offset * rows.scale_row_step : nullptr;
    body(j - begin, count, rows.data + page * rows.page_step + offset * rows.row_step, scale);
    j += count;
  }
}

struct TileRows {
  const std::byte* row[key_tile];  ///< after the last one some row, so that all of them can be prefetched
  float factor[key_tile];          ///< of each row; 0 after the last one

  /// Rows begin .. end, key_tile at most, each with its scale times `factor`.
  void find(const KeyRows& rows, std::int64_t begin, std::int64_t end, float common) {
    for_runs(rows, begin, end, [&](std::int64_t first, std::int64_t count, const std::byte* data, const float* scale) {
      for (std::int64_t i = 0; i < count; ++i) {
        row[first + i] = data + i * rows.row_step;
        factor[first + i] = scale ? common * scale[i * rows.scale_row_step] : common;
      }
    });
    for (std::int64_t j = end - begin; j < key_tile; ++j) row[j] = end > begin ? row[0] : rows.data, factor[j] = 0;
  }

  /// Rows that are `step` bytes apart.
  void find_dense(const std::byte* data, std::int64_t step, std::int64_t count, float common) {
    for (std::int64_t j = 0; j < key_tile; ++j)
      row[j] = j < count ? data + j * step : data, factor[j] = j < count ? common : 0;
  }
};

/// Where the tiles of a task lie, one after the other, with the next one for prefetches.
class RowStream {
 public:
  RowStream(const KeyRows& rows, float factor) : rows_(rows), factor_(factor) {}

  void begin(std::int64_t begin, std::int64_t end) { tiles_[next_].find(rows_, begin, end, factor_); }

  struct Step {
    const TileRows& now;
    const TileRows* ahead;  ///< null after the last one
  };
  /// The next tile; the one that follows it has rows `end` .. `next_end`.
  Step take(std::int64_t end, std::int64_t next_end) {
    const TileRows& now = tiles_[next_];
    next_ = 1 - next_;
    if (end < next_end) tiles_[next_].find(rows_, end, next_end, factor_);
    return {now, end < next_end ? &tiles_[next_] : nullptr};
  }

 private:
  const KeyRows& rows_;
  float factor_;
  int next_ = 0;
  TileRows tiles_[2];
};

}  // namespace cermet::cpu
