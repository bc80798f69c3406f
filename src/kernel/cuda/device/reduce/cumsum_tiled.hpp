// Configuration of cumsum along an axis that is not the last one, in tiles: host and device.
#pragma once

#include "kernel/cuda/device/reduce/scan.hpp"

namespace cermet {
enum class DType : uint8_t;  // base/dtype.hpp on the host, types.cuh on the device
}

namespace cermet::cumsum_tiled {

inline constexpr int threads = 512, sector_bytes = 32, wide = 32;

struct Config {
  DType type = {};
  bool wraps = false;  ///< sums of integers
  int width = wide;    ///< lines of a tile: neighbours; those of a sector, or 32

  template <class Visit>
  constexpr void fields(Visit&& visit) const {
    visit("type", type), visit("wraps", wraps), visit("width", width);
  }
};

/// Rows of a slot in a step, held in registers. Sums depend on it, so it is one number for each type.
constexpr int slot_rows(int element_bytes) { return element_bytes > 4 ? 8 : 16; }

using Params = scan::Params;

}  // namespace cermet::cumsum_tiled
