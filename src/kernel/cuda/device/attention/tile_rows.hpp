// Sizes of tiles of 16-bit elements in shared memory that ldmatrix reads, for both halves.
#pragma once

namespace cermet::attention {

/// Elements of a swizzled piece of a row in shared memory: pieces of 128 or 64 bytes lie one after the other, each with
/// all rows of the tile. 0 where the row does not divide into such pieces: then rows are padded to an odd number of
/// 16-byte chunks. Either way the 8 rows of a matrix that ldmatrix reads lie in different banks.
constexpr int tile_piece(int size) { return size % 64 == 0 ? 64 : size % 32 == 0 ? 32 : 0; }
/// Bytes of `rows` rows of `size` 16-bit elements.
constexpr int tile_bytes(int size, int rows) {
  return rows * (tile_piece(size) != 0 ? 2 * size : 16 * (2 * ((size + 15) / 16) + 1));
}
}  // namespace cermet::attention
