#include "tests/emulator/tensor_map.hpp"

#include <algorithm>
#include <cstring>

namespace cermet::emulator {
namespace {

constexpr std::uint64_t map_mark = 0x70616d20726f7365;

}  // namespace

TensorMap encode_tensor_map(const TensorMapShape& shape) {
  TensorMapContent c;
  c.mark = map_mark;
  c.data = reinterpret_cast<std::uint64_t>(shape.data);
  c.rank = 2;
  c.element_bytes = static_cast<std::uint32_t>(byte_size(shape.dtype));
  c.swizzle_bytes = shape.swizzle_bytes;
  c.size[0] = static_cast<std::uint32_t>(shape.columns);
  c.size[1] = static_cast<std::uint32_t>(shape.rows);
  c.stride[0] = static_cast<std::uint64_t>(shape.row_stride) * c.element_bytes;
  c.box[0] = static_cast<std::uint16_t>(shape.box_columns);
  c.box[1] = static_cast<std::uint16_t>(shape.box_rows);
  require(c.data % 16 == 0, "tensor map: expected an address that is a multiple of 16, found {:#x}", c.data);
  require(c.stride[0] % 16 == 0, "tensor map: expected a stride of whole 16 bytes, found {}", c.stride[0]);
  require(shape.box_columns >= 1 && shape.box_columns <= 256 && shape.box_rows >= 1 && shape.box_rows <= 256,
          "tensor map: expected tiles of 1 to 256 rows and columns, found {} and {}", shape.box_rows,
          shape.box_columns);
  const std::uint32_t row = shape.box_columns * c.element_bytes;
  require(row % 16 == 0 && (shape.swizzle_bytes == 0 || row <= shape.swizzle_bytes),
          "tensor map: expected tile rows of whole 16 bytes, at most {}, found {}", shape.swizzle_bytes, row);
  TensorMap map{};
  std::memcpy(&map, &c, sizeof c);
  return map;
}

TensorMapContent decode_tensor_map(const std::byte* bytes) {
  TensorMapContent c;
  std::memcpy(&c, bytes, sizeof c);
  if (c.mark != map_mark) fail(Status::internal, "tensor map: expected one of this device, found other bytes");
  return c;
}

std::uint64_t tile_bytes(const TensorMapContent& map) {
  std::uint64_t bytes = map.element_bytes;
  for (std::uint32_t d = 0; d < map.rank; ++d) bytes *= map.box[d];
  return bytes;
}

void each_row(const TensorMapContent& map, std::span<const std::int32_t> coordinates,
              const std::function<void(const TileRow&)>& f) {
  const std::uint64_t row_bytes = std::uint64_t{map.box[0]} * map.element_bytes, rows = tile_bytes(map) / row_bytes;
  for (std::uint64_t r = 0; r < rows; ++r) {
    TileRow row{map.data, 0, 0, r * row_bytes};
    bool inside = true;
    std::uint64_t rest = r;
    for (std::uint32_t d = 1; d < map.rank; ++d) {
      const std::int64_t at = std::int64_t{coordinates[d]} + static_cast<std::int64_t>(rest % map.box[d]);
      rest /= map.box[d];
      inside = inside && at >= 0 && at < map.size[d];
      row.from += static_cast<std::uint64_t>(at) * map.stride[d - 1];
    }
    const std::int64_t first = coordinates[0], last = first + map.box[0];
    const std::int64_t low = std::max<std::int64_t>(first, 0), high = std::min<std::int64_t>(last, map.size[0]);
    if (inside && low < high) {
      row.first = static_cast<std::uint64_t>(low - first) * map.element_bytes;
      row.bytes = static_cast<std::uint64_t>(high - low) * map.element_bytes;
      row.from += static_cast<std::uint64_t>(low) * map.element_bytes;
    }
    f(row);
  }
}

std::uint64_t swizzled(const TensorMapContent& map, std::uint64_t address) {
  const std::uint64_t mask = map.swizzle_bytes ? map.swizzle_bytes / 16 - 1 : 0;
  return address ^ ((address >> 7 & mask) << 4);
}

}  // namespace cermet::emulator
