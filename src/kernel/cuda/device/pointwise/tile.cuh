// The engine of elementwise tasks: a thread has a few vectors of neighbouring elements and issues all their loads
// before it uses one.
#pragma once

#include "kernel/cuda/device/overlap.cuh"
#include "kernel/cuda/device/pointwise/tile.hpp"
#include "kernel/cuda/device/rowwise/row_vectors.cuh"

namespace cermet {

/// Vectors of a thread for which elementwise tasks are compiled.
inline constexpr int tile_vectors = 2;

/// One vector: `count` elements from `column` on, at most Width; none where the tile ends before.
template <int Width, Tiling T>
struct VectorCoord {
  static constexpr int width = Width;
  static constexpr Tiling tiling = T;
  RowIndex index;
  int64_t column;
  int count;
  bool whole;  ///< all of them, with one access

  CERMET_DEVICE VectorCoord(const TileShape& shape, uint32_t row, uint32_t vector) {
    column = static_cast<int64_t>(vector) * Width;
    const bool inside = row < shape.rows && vector < shape.row_columns;
    if constexpr (T == Tiling::simple) {
      index = {{row, 0, 0}};
      count = inside ? Width : 0;
      whole = inside;
    } else {
      index = row_index(shape.dims, row);
      count = !inside ? 0 : static_cast<int>(min_of<int64_t>(shape.length - column, Width));
      whole = shape.aligned != 0 && count == Width;
    }
  }
  template <class E>
  CERMET_DEVICE E* of(const RowOperand& operand) const {
    return row_of<E, T == Tiling::simple>(operand, index) + column;
  }
};

/// `count` elements, which are those of a whole vector where the coordinate is of one.
template <class T, class Coord>
CERMET_DEVICE Vector<T, Coord::width> load_tile(const T* from, int count, const Coord& coord) {
  if constexpr (Coord::tiling == Tiling::simple) {
    return load_vector<Coord::width>(from);
  } else {
    if (coord.whole) return load_vector<Coord::width>(from);
    Vector<T, Coord::width> result{};
#pragma unroll
    for (int k = 0; k < Coord::width; ++k)
      if (k < count) result[k] = from[k];
    return result;
  }
}

/// The elements of a vector; one element repeated where the operand does not go along the row.
template <class T, class Coord>
CERMET_DEVICE Vector<T, Coord::width> load_tile(const TileOperand& operand, const Coord& coord) {
  if (operand.along != 0) return load_tile(coord.template of<const T>(operand.rows), coord.count, coord);
  Vector<T, Coord::width> result;
  const T value = *(coord.template of<const T>(operand.rows) - coord.column);
#pragma unroll
  for (int k = 0; k < Coord::width; ++k) result[k] = value;
  return result;
}

template <class T, class Coord>
CERMET_DEVICE void store_tile(const TileOperand& operand, const Coord& coord, const Vector<T, Coord::width>& v) {
  T* to = coord.template of<T>(operand.rows);
  if constexpr (Coord::tiling == Tiling::simple) {
    store_vector(to, v);
  } else {
    if (coord.whole) return store_vector(to, v);
#pragma unroll
    for (int k = 0; k < Coord::width; ++k)
      if (k < coord.count) to[k] = v[k];
  }
}

/// Runs a work item: load(coord) for the thread's vectors, then store(raw, coord) for each.
template <int Width, Tiling T, class Team, class Load, class Store>
CERMET_DEVICE void for_tile(const TileShape& shape, uint32_t item, Team team, Load load, Store store) {
  using Coord = VectorCoord<Width, T>;
  const uint32_t above = shape.magic == 0 ? item : __umulhi(item, shape.magic) >> shape.shift,
                 tile = item - above * shape.tiles_per_row;
  const uint32_t row = above * shape.item_rows + (team.rank() >> shape.lanes_shift);
  const uint32_t vector = tile * shape.item_columns + (team.rank() & ((1u << shape.lanes_shift) - 1u));
  static_assert(tile_vectors == 2);
  const Coord first(shape, row, vector);
  if constexpr (T == Tiling::general) {
    if (first.count > 0) store(load(first), first);
  } else {
    const Coord second(shape, row + shape.step_rows, vector + shape.step_columns);
    const bool has_second = second.count > 0 && shape.vectors == 2;
    decltype(load(first)) a, b;
    if (first.count > 0) a = load(first);
    if (has_second) b = load(second);
    if (first.count > 0) store(a, first);
    if (has_second) store(b, second);
  }
}

}  // namespace cermet
