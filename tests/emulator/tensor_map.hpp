// Tensor maps as the emulated device encodes them, and the copies that they describe.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "device/device.hpp"

namespace cermet::emulator {

/// The bytes of a map. Dimensions from the innermost on.
struct TensorMapContent {
  std::uint64_t mark = 0;
  std::uint64_t data = 0;
  std::uint32_t rank = 0, element_bytes = 0, swizzle_bytes = 0;
  std::uint32_t size[5] = {};
  std::uint64_t stride[4] = {};  ///< bytes, of all but the innermost
  std::uint16_t box[5] = {};     ///< elements of a tile
};
static_assert(sizeof(TensorMapContent) <= 128);

TensorMap encode_tensor_map(const TensorMapShape& shape);
/// Throws Error where the bytes are no map.
TensorMapContent decode_tensor_map(const std::byte* bytes);

/// Rows of a tile at coordinates: f(address in the tensor or 0, bytes there, offset in the tile, its bytes).
struct TileRow {
  std::uint64_t from = 0;
  std::uint64_t first = 0, bytes = 0;  ///< part of the row that is inside the tensor
  std::uint64_t offset = 0;            ///< of the row in the tile
};
void each_row(const TensorMapContent& map, std::span<const std::int32_t> coordinates,
              const std::function<void(const TileRow&)>& f);
std::uint64_t tile_bytes(const TensorMapContent& map);
/// Where a byte of a tile is in shared memory.
std::uint64_t swizzled(const TensorMapContent& map, std::uint64_t address);

}  // namespace cermet::emulator
