#include "kernel/cpu/movement/copy.hpp"

#include <algorithm>
#include <cstring>

#include "base/checked.hpp"
#include "kernel/cpu/by_size.hpp"
#include "kernel/cpu/movement/axes.hpp"

namespace cermet::cpu {
namespace {

/// Operand 0 is the source, operand 1 the destination.
using CopyAxes = StridedAxes<2>;

/// Merges adjacent axes that are contiguous on both sides. At least one axis is left.
CopyAxes simplified(const Shape& shape, const Shape& from, const Shape& to) {
  CopyAxes axes;
  for (int a = 0; a < shape.rank(); ++a) axes.append(shape[a], {from[a], to[a]});
  if (axes.rank() == 0) axes.push_back(1, {1, 1});
  return axes;
}

template <class T>
void copy_run(const T* from, std::int64_t from_stride, T* to, std::int64_t to_stride, std::int64_t count) {
  if (to_stride == 1 && from_stride == 1) {
    std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(T));
  } else if (to_stride == 1 && from_stride == 0) {
    std::fill_n(to, count, *from);
  } else {
    for (std::int64_t i = 0; i < count; ++i) to[i * to_stride] = from[i * from_stride];
  }
}

/// Work is divided into (position of the outer axes, piece of the inner one) and handed to threads in order.
template <class Body>
void for_pieces(const CopyAxes& outer, std::int64_t pieces, std::int64_t piece_bytes, ThreadPool& pool, Body&& body) {
  pool.parallel_for(outer.shape.elements() * pieces, rows_per_thread(piece_bytes),
                    [&](std::int64_t begin, std::int64_t end) {
                      Walk<2> walk(outer, begin / pieces);
                      for (std::int64_t unit = begin; unit < end; ++unit) {
                        body(walk.offset[0], walk.offset[1], unit % pieces);
                        if ((unit + 1) % pieces == 0) walk.next();
                      }
                    });
}

template <class T>
void copy_rows(const CopyAxes& outer, std::int64_t length, std::int64_t from_stride, std::int64_t to_stride,
               const T* from, T* to, ThreadPool& pool) {
  const std::int64_t piece = std::min<std::int64_t>(length, 1 << 16);
  for_pieces(outer, div_up(length, piece), piece * static_cast<std::int64_t>(sizeof(T)), pool,
             [&](std::int64_t from_at, std::int64_t to_at, std::int64_t p) {
               const std::int64_t begin = p * piece, count = std::min(piece, length - begin);
               copy_run(from + from_at + begin * from_stride, from_stride, to + to_at + begin * to_stride, to_stride,
                        count);
             });
}

/// One axis of a plane that is transposed: its length and strides on either side.
struct PlaneAxis {
  std::int64_t length, from, to;
};

/// Elements of a square that is transposed in registers, by row.
using Four = std::uint32_t __attribute__((vector_size(16)));

/// 4 x 4 elements: rows of the source, `from_step` apart, to columns of the result, whose rows are `to_step` apart.
void copy_square(const std::uint32_t* from, std::int64_t from_step, std::uint32_t* to, std::int64_t to_step) {
  Four rows[4];
  for (int r = 0; r < 4; ++r) std::memcpy(&rows[r], from + r * from_step, sizeof(Four));
  const Four low = __builtin_shufflevector(rows[0], rows[1], 0, 4, 1, 5),
             more_low = __builtin_shufflevector(rows[2], rows[3], 0, 4, 1, 5);
  const Four high = __builtin_shufflevector(rows[0], rows[1], 2, 6, 3, 7),
             more_high = __builtin_shufflevector(rows[2], rows[3], 2, 6, 3, 7);
  const Four columns[4] = {
      __builtin_shufflevector(low, more_low, 0, 1, 4, 5), __builtin_shufflevector(low, more_low, 2, 3, 6, 7),
      __builtin_shufflevector(high, more_high, 0, 1, 4, 5), __builtin_shufflevector(high, more_high, 2, 3, 6, 7)};
  for (int c = 0; c < 4; ++c) std::memcpy(to + c * to_step, &columns[c], sizeof(Four));
}

/// Rows [first, last) and `width` columns of a tile of the result.
template <class T>
void copy_tile(PlaneAxis across, PlaneAxis along, std::int64_t first, std::int64_t last, std::int64_t width,
               const T* from, T* to) {
  std::int64_t i = first;
  if constexpr (sizeof(T) == sizeof(std::uint32_t)) {
    for (; along.to == 1 && i + 4 <= last; i += 4) {
      std::int64_t j = 0;
      for (; j + 4 <= width; j += 4)
        copy_square(from + i + j * along.from, along.from, to + i * across.to + j, across.to);
      for (std::int64_t r = i; j < width && r < i + 4; ++r)
        copy_run(from + r + j * along.from, along.from, to + r * across.to + j, 1, width - j);
    }
  }
  for (; i < last; ++i) copy_run(from + i, along.from, to + i * across.to, along.to, width);
}

/// `across` is dense in the source, `along` is the last axis of the result.
template <class T>
void copy_tiles(const CopyAxes& outer, PlaneAxis across, PlaneAxis along, const T* from, T* to, ThreadPool& pool) {
  constexpr std::int64_t tile =
      64 / static_cast<std::int64_t>(sizeof(T)) * 2;  // two cache lines of the source; 16 to 128 rows
  for_pieces(outer, div_up(across.length, tile), tile * along.length * static_cast<std::int64_t>(sizeof(T)), pool,
             [&](std::int64_t from_at, std::int64_t to_at, std::int64_t p) {
               const std::int64_t first = p * tile, last = std::min(first + tile, across.length);
               for (std::int64_t j = 0; j < along.length; j += tile) {
                 const std::int64_t width = std::min(tile, along.length - j);
                 copy_tile(across, along, first, last, width, from + from_at + j * along.from,
                           to + to_at + j * along.to);
               }
             });
}

/// The axis, other than the last, along which the source is dense; -1 where there is none.
int dense_source_axis(const CopyAxes& axes) {
  for (int a = axes.rank() - 2; a >= 0; --a)
    if (axes.stride[0][a] == 1) return a;
  return -1;
}

template <class T>
void copy(const CopyAxes& axes, const T* from, T* to, ThreadPool& pool) {
  const int last = axes.rank() - 1;
  const auto [from_last, to_last] = axes.strides_of(last);
  const int across = from_last > 1 ? dense_source_axis(axes) : -1;
  CopyAxes outer;
  for (int a = 0; a < last; ++a)
    if (a != across) outer.push_back(axes.shape[a], axes.strides_of(a));
  if (across < 0) return copy_rows(outer, axes.shape[last], from_last, to_last, from, to, pool);
  const auto [from_across, to_across] = axes.strides_of(across);
  copy_tiles(outer, {axes.shape[across], from_across, to_across}, {axes.shape[last], from_last, to_last}, from, to,
             pool);
}

}  // namespace

void strided_copy(const Shape& shape, const void* from, const Shape& from_strides, void* to, const Shape& to_strides,
                  std::size_t element_bytes, ThreadPool& pool) {
  if (shape.elements() == 0) return;
  const CopyAxes axes = simplified(shape, from_strides, to_strides);
  by_element_size(element_bytes, [&](auto zero) {
    using T = decltype(zero);
    copy<T>(axes, static_cast<const T*>(from), static_cast<T*>(to), pool);
  });
}

}  // namespace cermet::cpu
