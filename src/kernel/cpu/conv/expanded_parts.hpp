// Single pixels expanded by AMX tiles, as conv.parts does, with its bits: pixels are packed once for all channels that
// a thread makes of them.
#pragma once

#include "kernel/cpu/conv/store.hpp"

namespace cermet::cpu {

/// Neighbouring pixels of x, `step` floats apart.
struct PixelRun {
  const float* from;
  std::int64_t step, count, channels;
};

/// Bytes of a packed pixel.
std::int64_t packed_pixel_bytes(std::int64_t channels);
/// Bytes from one panel of conv_parts_panels to the next.
std::int64_t packed_panel_bytes(std::int64_t channels);

/// Writes pixels as PackedPixels reads them.
void pack_pixels(const PixelRun& pixels, std::byte* packed);

/// The products of packed pixels with some panels of conv_parts_panels, 32 columns of results each, and what follows
/// them.
struct PackedPixels {
  const std::byte* packed;
  std::int64_t count, channels;

  /// `sum`: bounds, and a function in their place; `to`: results of the first pixel.
  void multiply(const std::byte* panels, std::int64_t columns, const TapProducts& products, const SumProgram& sum,
                const TapStore& to) const;
};

}  // namespace cermet::cpu
