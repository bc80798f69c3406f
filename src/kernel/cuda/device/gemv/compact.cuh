// Rows of bf16 weights in 12 bits an element, on their way into registers. Their layout: kernel/cuda/gemv/compact.hpp.
#pragma once

#include "kernel/cuda/device/gemv/vectors.cuh"

namespace cermet::gemv {

/// Sums of compact rows come out small: their elements lie below 2^-111. What they are multiplied with is that much
/// larger, so that nothing underflows.
inline constexpr float compact_scale = 0x1p64f;

/// A lane's eight elements of the piece that begins at `piece`, as bf16. Sign and upper bits of an exponent are four
/// bits in a byte, at 7 and at 2 to 0; those of the last four elements lie between, four bits lower. No exponent has a
/// bit above, so subnormals, which small elements are, need no care.
CERMET_DEVICE Piece compact_piece(const char* piece, int lane) {
  const auto low = reinterpret_cast<const Vector<uint32_t, 2>*>(piece)[lane];
  const uint32_t high = reinterpret_cast<const uint32_t*>(piece + 256)[lane];
  const uint32_t first = high & 0x87878787u, second = __funnelshift_l(high, high, 4) & 0x87878787u;
  Piece w;
  w[0] = __byte_perm(low[0], first, 0x5140);
  w[1] = __byte_perm(low[0], first, 0x7362);
  w[2] = __byte_perm(low[1], second, 0x5140);
  w[3] = __byte_perm(low[1], second, 0x7362);
  return w;
}

}  // namespace cermet::gemv
