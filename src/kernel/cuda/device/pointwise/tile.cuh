// The engine of elementwise tasks: a thread has a few vectors of neighbouring elements and issues all their loads before it uses one.
#pragma once

#include "kernel/cuda/device/pointwise/tile.hpp"
#include "kernel/cuda/device/rowwise/row.cuh"

namespace cermet {

/// Vectors of a thread for which elementwise tasks are compiled.
inline constexpr int tile_vectors = 2;

/// One vector: `count` elements from `column` on, at most Width; none where the tile ends before.
template <int Width>
struct TilePlace {
  RowIndex index;
  int64_t column;
  int count;
  bool whole;  ///< all of them, with one access

  __device__ __forceinline__ TilePlace(const TileShape& shape, uint32_t item, uint32_t vector) {
    const uint32_t lane = threadIdx.x & ((1u << shape.lanes_shift) - 1u), tile = item % shape.tiles_per_row, above = item / shape.tiles_per_row;
    const uint32_t rows = blockDim.x >> shape.lanes_shift;  // of the block, for each vector
    const uint32_t row = above * (shape.rows_step != 0 ? rows * shape.vectors : rows) + (threadIdx.x >> shape.lanes_shift) + vector * shape.rows_step;
    const uint32_t first = (tile * (shape.columns_step != 0 ? shape.vectors : 1u) << shape.lanes_shift) + lane + vector * shape.columns_step;
    index = row_index(shape.dims, row);
    column = static_cast<int64_t>(first) * Width;
    const int64_t left = row < shape.rows && vector < shape.vectors ? shape.length - column : 0;
    count = left < Width ? static_cast<int>(max_of<int64_t>(left, 0)) : Width;
    whole = shape.aligned != 0 && count == Width;
  }
};

template <int Width, class T>
__device__ __forceinline__ Vector<T, Width> load_tile(const T* from, int count, bool whole) {
  if (whole) return load_vector<Width>(from);
  Vector<T, Width> result{};
#pragma unroll
  for (int k = 0; k < Width; ++k)
    if (k < count) result[k] = from[k];
  return result;
}

/// The elements of a vector; one element repeated where the operand does not go along the row.
template <class T, int Width>
__device__ __forceinline__ Vector<T, Width> load_tile(const TileOperand& operand, const TilePlace<Width>& place) {
  const T* row = row_of<const T>(operand.rows, place.index);
  if (operand.along != 0) return load_tile<Width>(row + place.column, place.count, place.whole);
  Vector<T, Width> result{};
  if (place.count == 0) return result;
  const T value = *row;
#pragma unroll
  for (int k = 0; k < Width; ++k) result[k] = value;
  return result;
}

template <class T, int Width>
__device__ __forceinline__ void store_tile(T* to, const Vector<T, Width>& v, int count, bool whole) {
  if (whole) return store_vector(to, v);
#pragma unroll
  for (int k = 0; k < Width; ++k)
    if (k < count) to[k] = v[k];
}

template <class T, int Width>
__device__ __forceinline__ void store_tile(const TileOperand& operand, const TilePlace<Width>& place, const Vector<T, Width>& v) {
  store_tile(row_of<T>(operand.rows, place.index) + place.column, v, place.count, place.whole);
}

/// Runs a tile: Raw load(place) for each of the thread's vectors, then store(raw, place).
template <int Width, class Load, class Store>
__device__ __forceinline__ void for_tile(const TileShape& shape, uint32_t item, Load load, Store store) {
  using Place = TilePlace<Width>;
  const Place first(shape, item, 0), second(shape, item, 1);
  static_assert(tile_vectors == 2);
  const auto a = load(first), b = load(second);
  if (first.count > 0) store(a, first);
  if (second.count > 0) store(b, second);
}

}  // namespace cermet
