#include "tests/emulator/tensor_map.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

namespace cermet::emulator {
namespace {

constexpr std::uint64_t map_mark = 0x70616d20726f7365;

}  // namespace

TensorMap encode_tensor_map(const TensorMapShape& shape) {
  TensorMapContent c;
  c.mark = map_mark;
  c.data = reinterpret_cast<std::uint64_t>(shape.data);
  c.rank = static_cast<std::uint32_t>(2 + shape.outer_axes);
  c.element_bytes = static_cast<std::uint32_t>(byte_size(shape.dtype));
  c.swizzle_bytes = shape.swizzle_bytes;
  c.size[0] = static_cast<std::uint32_t>(shape.columns);
  c.size[1] = static_cast<std::uint32_t>(shape.rows);
  c.stride[0] = static_cast<std::uint64_t>(shape.row_stride) * c.element_bytes;
  c.box[0] = static_cast<std::uint16_t>(shape.box_columns);
  c.box[1] = static_cast<std::uint16_t>(shape.box_rows);
  for (int i = 0; i < shape.outer_axes; ++i) {
    const TensorMapShape::Axis& axis = shape.outer[static_cast<std::size_t>(i)];
    c.size[2 + i] = static_cast<std::uint32_t>(axis.size);
    c.stride[1 + i] = static_cast<std::uint64_t>(axis.stride) * c.element_bytes;
    c.box[2 + i] = static_cast<std::uint16_t>(axis.box);
    require(axis.size >= 1 && axis.box >= 1 && axis.box <= 256 && c.stride[1 + i] % 16 == 0,
            "tensor map: expected 1 to 256 matrices in a tile, whole 16 bytes apart, found {} of {}, {} bytes apart",
            axis.box, axis.size, c.stride[1 + i]);
  }
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

TensorMap encode_window_map(const cuda::WindowMapShape& shape) {
  TensorMapContent c;
  c.mark = map_mark;
  c.data = reinterpret_cast<std::uint64_t>(shape.data);
  c.rank = 4;
  c.element_bytes = static_cast<std::uint32_t>(byte_size(shape.dtype));
  c.swizzle_bytes = 128;
  const std::int64_t sizes[] = {shape.channels, shape.width, shape.height, shape.samples},
                     strides[] = {shape.column_stride, shape.row_stride, shape.sample_stride};
  for (std::size_t d = 0; d < 4; ++d) c.size[d] = static_cast<std::uint32_t>(sizes[d]);
  for (std::size_t d = 0; d < 3; ++d) c.stride[d] = static_cast<std::uint64_t>(strides[d]) * c.element_bytes;
  c.box[0] = static_cast<std::uint16_t>(shape.box_channels);
  c.box[1] = static_cast<std::uint16_t>(shape.box_pixels);
  c.box[2] = c.box[3] = 1;
  c.is_windows = true;
  const int first[] = {shape.first_w, shape.first_h}, last[] = {shape.last_w, shape.last_h},
            step[] = {shape.stride_w, shape.stride_h};
  for (std::size_t d = 0; d < 2; ++d) {
    c.first[d] = static_cast<std::int8_t>(first[d]);
    c.last[d] = static_cast<std::int8_t>(last[d]);
    c.step[d] = static_cast<std::uint8_t>(step[d]);
  }
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

namespace {

/// A row at a place, with the part of it that is inside the tensor.
TileRow row_at(const TensorMapContent& map, std::uint64_t offset, std::span<const std::int64_t> place) {
  TileRow row{map.data, 0, 0, offset};
  for (std::uint32_t d = 1; d < map.rank; ++d) {
    if (place[d] < 0 || place[d] >= map.size[d]) return row;
    row.from += static_cast<std::uint64_t>(place[d]) * map.stride[d - 1];
  }
  const std::int64_t first = place[0], last = first + map.box[0];
  const std::int64_t low = std::max<std::int64_t>(first, 0), high = std::min<std::int64_t>(last, map.size[0]);
  if (low >= high) return row;
  row.first = static_cast<std::uint64_t>(low - first) * map.element_bytes;
  row.bytes = static_cast<std::uint64_t>(high - low) * map.element_bytes;
  row.from += static_cast<std::uint64_t>(low) * map.element_bytes;
  return row;
}

}  // namespace

void each_row(const TensorMapContent& map, std::span<const std::int32_t> coordinates, std::span<const std::int32_t> tap,
              const std::function<void(const TileRow&)>& f) {
  const std::uint64_t row_bytes = std::uint64_t{map.box[0]} * map.element_bytes, rows = tile_bytes(map) / row_bytes;
  std::vector<std::int64_t> at(coordinates.begin(), coordinates.end());
  for (std::uint64_t r = 0; r < rows; ++r) {
    std::vector<std::int64_t> place = at;
    if (map.is_windows)
      for (std::size_t d = 0; d < 2; ++d) place[d + 1] += tap[d];
    f(row_at(map, r * row_bytes, place));
    if (map.is_windows) {
      for (std::size_t d = 0; d < 2; ++d) {  // windows go on in the next row, and in the next sample
        if ((at[d + 1] += map.step[d]) <= std::int64_t{map.size[d + 1]} - 1 + map.last[d]) break;
        at[d + 1] = map.first[d];
        if (d == 1) ++at[3];
      }
    } else {
      for (std::uint32_t d = 1; d < map.rank; ++d) {
        if (++at[d] < coordinates[d] + std::int64_t{map.box[d]}) break;
        at[d] = coordinates[d];
      }
    }
  }
}

std::uint64_t swizzled(const TensorMapContent& map, std::uint64_t address) {
  const std::uint64_t mask = map.swizzle_bytes ? map.swizzle_bytes / 16 - 1 : 0;
  return address ^ ((address >> 7 & mask) << 4);
}

}  // namespace cermet::emulator
