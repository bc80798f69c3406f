// Parameters of rows that are summed over ranks and then run through a region of row reductions.
#pragma once

#include "kernel/cuda/device/peer/link.hpp"
#include "kernel/cuda/device/rowwise/region.hpp"

namespace cermet::peer {

struct RowsParams {
  Link link;
  const void* x;  ///< this rank's summands, dense
  void* sum;      ///< of all ranks, where the region reads it
  int64_t row_units;
  uint32_t items, channels;  ///< items of the region; channel c has items c, c + channels, ..
  row_region::Params region;
};

}  // namespace cermet::peer
