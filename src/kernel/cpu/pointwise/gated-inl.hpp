// Gate and linear half of rows, tile by tile. Include after <hwy/foreach_target.h>.
#if defined(CERMET_GATED_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CERMET_GATED_INL
#undef CERMET_GATED_INL
#else
#define CERMET_GATED_INL
#endif

#include "kernel/cpu/tile-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {

/// Splits n interleaved pairs at `pairs` into two tiles.
inline void deinterleave(const float* pairs, float* first, float* second, std::size_t n) {
  std::size_t i = 0;
  for (; i + lanes() <= n; i += lanes()) {
    Floats a, b;
    hn::LoadInterleaved2(FloatTag(), pairs + 2 * i, a, b);
    hn::StoreU(a, FloatTag(), first + i);
    hn::StoreU(b, FloatTag(), second + i);
  }
  for (; i < n; ++i) {
    first[i] = pairs[2 * i];
    second[i] = pairs[2 * i + 1];
  }
}

/// Gate and linear half of elements [first, first + n) of a row of 2 * features elements.
struct GatedTile {
  TileBuffer first_buffer, second_buffer, pair_buffer;
  const float *gate = nullptr, *up = nullptr;

  void read(RowIn row, std::size_t features, std::size_t first, std::size_t n, bool gate_first, bool interleaved) {
    const float *a = first_buffer.data, *b = second_buffer.data;
    if (!interleaved) {
      a = row.read(first, n, first_buffer);
      b = row.read(features + first, n, second_buffer);
    } else {
      const std::size_t half = HWY_MIN(n, tile_size / 2);
      deinterleave(row.read(2 * first, 2 * half, pair_buffer), first_buffer.data, second_buffer.data, half);
      if (n > half)
        deinterleave(row.read(2 * (first + half), 2 * (n - half), pair_buffer), first_buffer.data + half,
                     second_buffer.data + half, n - half);
    }
    gate = gate_first ? a : b;
    up = gate_first ? b : a;
  }
};

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
