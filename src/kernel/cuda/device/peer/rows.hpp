// Parameters of rows that are summed over ranks and then run through a region of row reductions.
#pragma once

#include "kernel/cuda/device/peer/link.hpp"
#include "kernel/cuda/device/rowwise/row_params.hpp"

namespace cermet::peer {

/// An operand that does not wait for other ranks: read ahead while they are waited for.
struct RowsAhead {
  const char* data;
  int64_t item_bytes;  ///< from item to item; 0: the same for all
  uint32_t bytes;      ///< of an item
};
inline constexpr int most_ahead = 3;

struct RowsParams {
  Link link;
  const void* x;  ///< this rank's summands, dense
  void* sum;      ///< of all ranks, where the region reads it
  int64_t row_units;
  uint32_t items, channels;  ///< items of the region; channel c has items c, c + channels, ..
  RowsAhead ahead[most_ahead];
  row_region::Params region;
};

/// How a region finds the sum.
struct SummedOperand {
  int operand;        ///< of the region's launch
  int shared_offset;  ///< where rows may lie in shared memory, after the region's own; negative: the region must read
                      ///< them from global memory
  bool leaves;        ///< it is a result by itself

  template <class Visit>
  constexpr void fields(Visit&& visit) const {
    visit("operand", operand), visit("shared_offset", shared_offset), visit("leaves", leaves);
  }
};
/// Shared memory for the rows of an item.
inline constexpr int64_t summed_bytes = stamped_data_bytes;

}  // namespace cermet::peer
