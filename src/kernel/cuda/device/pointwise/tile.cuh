// The engine of elementwise tasks: a thread has one vector of neighbouring elements of a row.
#pragma once

#include "kernel/cuda/device/pointwise/tile.hpp"
#include "kernel/cuda/device/rowwise/row.cuh"

namespace cermet {

/// A thread's place: `count` elements from `column` on, at most Width; none where the tile ends before.
template <int Width>
struct TilePlace {
  RowIndex index;
  int64_t column;
  int count;
  bool vector;  ///< all of them, with one access

  __device__ __forceinline__ TilePlace(const TileShape& shape, uint32_t item) {
    const uint32_t lane = threadIdx.x & ((1u << shape.lanes_shift) - 1u), tile = item % shape.tiles_per_row;
    const uint32_t row = item / shape.tiles_per_row * (blockDim.x >> shape.lanes_shift) + (threadIdx.x >> shape.lanes_shift);
    index = row_index(shape.dims, row);
    column = (static_cast<int64_t>(tile) * (1 << shape.lanes_shift) + lane) * Width;
    const int64_t left = row < shape.rows ? shape.length - column : 0;
    count = left < Width ? static_cast<int>(max_of<int64_t>(left, 0)) : Width;
    vector = shape.aligned != 0 && count == Width;
  }
};

template <int Width, class T>
__device__ __forceinline__ Vector<T, Width> load_tile(const T* from, int count, bool vector) {
  if (vector) return load_vector<Width>(from);
  Vector<T, Width> result{};
#pragma unroll
  for (int k = 0; k < Width; ++k)
    if (k < count) result[k] = from[k];
  return result;
}

/// The elements of a thread; one element repeated where the operand does not go along the row.
template <class T, int Width>
__device__ __forceinline__ Vector<T, Width> load_tile(const TileOperand& operand, const TilePlace<Width>& place) {
  const T* row = row_of<const T>(operand.rows, place.index);
  if (operand.along != 0) return load_tile<Width>(row + place.column, place.count, place.vector);
  Vector<T, Width> result;
  const T value = *row;
#pragma unroll
  for (int k = 0; k < Width; ++k) result[k] = value;
  return result;
}

template <class T, int Width>
__device__ __forceinline__ void store_tile(T* to, const Vector<T, Width>& v, int count, bool vector) {
  if (vector) return store_vector(to, v);
#pragma unroll
  for (int k = 0; k < Width; ++k)
    if (k < count) to[k] = v[k];
}

template <class T, int Width>
__device__ __forceinline__ void store_tile(const TileOperand& operand, const TilePlace<Width>& place, const Vector<T, Width>& v) {
  store_tile(row_of<T>(operand.rows, place.index) + place.column, v, place.count, place.vector);
}

}  // namespace cermet
