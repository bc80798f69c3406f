// The engine of row kernels: a row of float32 values spread over the lanes that share it, held in registers or read again for each pass.
#pragma once

#include "kernel/cuda/device/rowwise/rows.hpp"
#include "kernel/cuda/device/rowwise/vectors.cuh"
#include "kernel/cuda/device/tile/reduce.cuh"

namespace cermet {

struct RowIndex {
  uint32_t at[3];
};

__device__ __forceinline__ RowIndex row_index(const RowDims& dims, uint32_t row) {
  if (dims.inner == 0) return {{row, 0, 0}};
  const uint32_t outer = row / dims.inner;
  return {{row % dims.inner, outer % dims.middle, outer / dims.middle}};
}

template <class T>
__device__ __forceinline__ T* row_of(const RowOperand& operand, const RowIndex& row) {
  return static_cast<T*>(operand.data) + row.at[0] * operand.step[0] + row.at[1] * operand.step[1] + row.at[2] * operand.step[2];
}

/// Which elements of a row a thread has: vectors of Width neighbours, one of every Lanes vectors. Columns 0: the length is known at run time only.
/// Columns and the length are multiples of Width. Lanes: at most 32 (several rows in a block), or all threads of the block.
template <int Columns, int Lanes, int Width>
struct RowMap {
  static constexpr bool held = Columns > 0;  ///< in registers
  static constexpr int lanes = Lanes, width = Width, vectors = held ? static_cast<int>(div_up(Columns, Lanes*Width)) : 1;

  int lane, length;

  __device__ __forceinline__ RowMap(int run_time_length) : lane(static_cast<int>(threadIdx.x) % Lanes), length(held ? Columns : run_time_length) {}
  __device__ __forceinline__ int column(int i) const { return (i * Lanes + lane) * Width; }
  /// Whether vector i lies in the row; known to the compiler for all but the last.
  __device__ __forceinline__ bool inside(int i) const { return (i + 1) * Lanes * Width <= Columns || column(i) < Columns; }
};

/// A row in registers. Source: `Raw fetch(column)` loads, `values(raw, column, v)` converts.
template <class Map>
struct HeldRow {
  static constexpr int width = Map::width;
  Map map;
  float value[Map::vectors][Map::width];

  template <class Source>
  __device__ __forceinline__ HeldRow(Map m, const Source& source) : map(m) {
    typename Source::Raw raw[Map::vectors];  // every load is issued before the first use
#pragma unroll
    for (int i = 0; i < Map::vectors; ++i)
      if (map.inside(i)) raw[i] = source.fetch(map.column(i));
#pragma unroll
    for (int i = 0; i < Map::vectors; ++i)
      if (map.inside(i)) source.values(raw[i], map.column(i), value[i]);
  }
  /// Calls body(vector number, column, values) for each of the thread's vectors.
  template <class Body>
  __device__ __forceinline__ void each(Body&& body) {
#pragma unroll
    for (int i = 0; i < Map::vectors; ++i)
      if (map.inside(i)) body(i, map.column(i), value[i]);
  }
  /// The row with its values changed by body(vector number, column, values).
  template <class Body>
  __device__ __forceinline__ HeldRow& then(Body body) {
    each(body);
    return *this;
  }
};

/// A row that is read again for each pass. Load: load(column, v).
template <class Map, class Load>
struct StreamedRow {
  static constexpr int width = Map::width;
  Map map;
  Load load;

  template <class Body>
  __device__ __forceinline__ void each(Body&& body) {
    for (int column = map.lane * width; column < map.length; column += Map::lanes * width) {
      float v[width];
      load(column, v);
      body(0, column, v);
    }
  }
  template <class Body>
  __device__ __forceinline__ auto then(Body body) {
    const auto composed = [load = load, body](int column, float(&v)[width]) {
      load(column, v);
      body(0, column, v);
    };
    return StreamedRow<Map, decltype(composed)>{map, composed};
  }
};

template <class Map, class Source>
__device__ __forceinline__ auto make_row(Map map, const Source& source) {
  if constexpr (Map::held) {
    return HeldRow<Map>(map, source);
  } else {
    const auto load = [source](int column, float(&v)[Map::width]) { source.values(source.fetch(column), column, v); };
    return StreamedRow<Map, decltype(load)>{map, load};
  }
}

/// How an operand goes along a row: absent, one number, a number per element.
enum class Along : uint8_t { none, one, each };

/// A parameter along the rows. In rows that are held it is loaded early, beside the row itself.
template <Along Kind, class T, class Map>
struct AlongRow {
  const T* data;
  Vector<T, Map::width> raw[Map::vectors];

  __device__ __forceinline__ AlongRow(const Map& map, const void* memory) : data(static_cast<const T*>(memory)) {
    if constexpr (Kind == Along::one) raw[0][0] = data[0];
    if constexpr (Kind == Along::each && Map::held) {
#pragma unroll
      for (int i = 0; i < Map::vectors; ++i)
        if (map.inside(i)) raw[i] = load_vector<Map::width>(data + map.column(i));
    }
  }
  /// Elements [column, column + width), which are vector i of this thread.
  __device__ __forceinline__ void get(int i, int column, float (&v)[Map::width]) const {
    if constexpr (Kind == Along::one) {
#pragma unroll
      for (int k = 0; k < Map::width; ++k) v[k] = to_float(raw[0][0]);
    } else if constexpr (Map::held) {
      to_floats(raw[i], v);
    } else {
      to_floats(load_vector<Map::width>(data + column), v);
    }
  }
};

/// Reduction over the lanes of a row. `scratch`: 32 floats for each call of a task, unused up to 32 lanes.
template <class Reduction, int Lanes>
__device__ __forceinline__ float row_reduce(float x, float* scratch) {
  if constexpr (Lanes <= 32) return warp_reduce<Reduction, Lanes>(x);
  else return block_reduce<Reduction, Lanes>(x, scratch);
}

/// Ends a task whose lanes share memory, so that the block's next item may use it again.
template <int Lanes>
__device__ __forceinline__ void end_of_row() {
  if constexpr (Lanes > 32) __syncthreads();
}

}  // namespace cermet
