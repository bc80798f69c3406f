// The end of a row that leaves as codes: one scale for the row, one for each group of columns, or given scales.
#pragma once

#include "kernel/cuda/device/rowwise/codes.cuh"
#include "kernel/cuda/device/rowwise/quantize_row.hpp"

namespace cermet {

struct Quantization {
  CodeFormat format;
  Along scale = Along::none;  ///< given: the quantization is static
  Along offset = Along::none;
  bool divide = true;  ///< static: by the scale
  bool exact = false;
};

/// Pointers of one row.
template <Quantization Q>
struct QuantizedRow {
  Element<Q.format.dtype>* codes;
  float* scale;
  int32_t* zero_point;

  __device__ __forceinline__ QuantizedRow(const QuantizedRows& out, const RowIndex& index)
      : codes(row_of<Element<Q.format.dtype>>(out.codes, index)),
        scale(row_of<float>(out.scale, index)),
        zero_point(Q.format.asymmetric ? row_of<int32_t>(out.zero_point, index) : nullptr) {}

  __device__ __forceinline__ void store_scale(int group, CodeScale s) const {
    scale[group] = s.scale;
    if constexpr (Q.format.asymmetric) zero_point[group] = static_cast<int32_t>(s.zero_point);
  }
};

/// One scale for the row. `scratch`: [64] words.
template <Quantization Q, int Lanes, class Row>
__device__ __forceinline__ void quantize_whole(Row& row, const QuantizedRow<Q>& out, bool active, uint32_t* scratch) {
  ValueRange range;
  row.each([&](int, int, const float(&v)[Row::width]) {
#pragma unroll
    for (int k = 0; k < Row::width; ++k) widen<Q.format>(range, v[k]);
  });
  const CodeScale scale = code_scale<Q.format>(row_range<Q.format, Lanes>(range, scratch));
  const Quantizer<Q.format, Q.exact> quantizer(scale);
  if (!active) return;
  row.each([&](int, int column, const float(&v)[Row::width]) { store_vector(out.codes + column, quantizer.codes(v)); });
  if (row.map.lane == 0) out.store_scale(0, scale);
}

/// Groups of a row in registers: each lies in neighbouring lanes of a warp.
template <Quantization Q, class Row>
__device__ __forceinline__ void quantize_held_groups(Row& row, const QuantizedRow<Q>& out, bool active) {
  constexpr int width = Row::width, lanes = Q.format.group / width;
  static_assert(Q.format.group % width == 0 && lanes <= 32 && (lanes & (lanes - 1)) == 0);
#pragma unroll
  for (int i = 0; i < row.map.vectors; ++i) {
    const bool inside = row.map.inside(i);
    ValueRange range;
#pragma unroll
    for (int k = 0; k < width; ++k)
      if (inside) widen<Q.format>(range, row.value[i][k]);
    range.high = __uint_as_float(warp_max<lanes>(magnitude_bits(range.high)));
    if constexpr (Q.format.asymmetric) range.low = __uint_as_float(warp_max<lanes>(magnitude_bits(range.low)));
    const CodeScale scale = code_scale<Q.format>(range);
    const Quantizer<Q.format, Q.exact> quantizer(scale);
    if (!inside || !active) continue;
    const int column = row.map.column(i);
    store_vector(out.codes + column, quantizer.codes(row.value[i]));
    if (column % Q.format.group == 0) out.store_scale(column / Q.format.group, scale);
  }
}

/// Groups of a row that is read again: a warp for each, twice over its columns.
template <Quantization Q, class Row>
__device__ __forceinline__ void quantize_streamed_groups(Row& row, const QuantizedRow<Q>& out, int warps) {
  constexpr int width = Row::width;
  const int lane = static_cast<int>(threadIdx.x) % 32, groups = static_cast<int>(div_up(row.map.length, Q.format.group));
  for (int group = static_cast<int>(threadIdx.x) / 32; group < groups; group += warps) {
    const int begin = group * Q.format.group, end = min_of(begin + Q.format.group, row.map.length);
    ValueRange range;
    float v[width];
    for (int column = begin + lane * width; column < end; column += 32 * width) {
      row.load(column, v);
#pragma unroll
      for (int k = 0; k < width; ++k) widen<Q.format>(range, v[k]);
    }
    const CodeScale scale = code_scale<Q.format>(row_range<Q.format, 32>(range, nullptr));
    const Quantizer<Q.format, Q.exact> quantizer(scale);
    for (int column = begin + lane * width; column < end; column += 32 * width) {
      row.load(column, v);
      store_vector(out.codes + column, quantizer.codes(v));
    }
    if (lane == 0) out.store_scale(group, scale);
  }
}

/// Given scales: value / scale + offset or value * scale + offset, each operation rounded.
template <Quantization Q, class Row, class Map>
__device__ __forceinline__ void quantize_static(Row& row, Map map, const QuantizedRows& rows, const QuantizedRow<Q>& out) {
  const AlongRow<Q.scale, float, Map> scales(map, rows.static_scale);
  const AlongRow<Q.offset, float, Map> offsets(map, rows.static_offset);
  row.each([&](int i, int column, const float(&v)[Row::width]) {
    float s[Row::width], o[Row::width];
    scales.get(i, column, s);
    if constexpr (Q.offset != Along::none) offsets.get(i, column, o);
#pragma unroll
    for (int k = 0; k < Row::width; ++k) {
      s[k] = Q.divide ? __fdiv_rn(v[k], s[k]) : __fmul_rn(v[k], s[k]);
      if constexpr (Q.offset != Along::none) s[k] = __fadd_rn(s[k], o[k]);
    }
    store_vector(out.codes + column, from_floats<Element<Q.format.dtype>>(s));
  });
}

/// Writes the codes of a row, and its scales where they are not given.
template <Quantization Q, int Lanes, class Row, class Map>
__device__ __forceinline__ void quantize_row(Row& row, Map map, const QuantizedRows& rows, const RowIndex& index, bool active, uint32_t* scratch) {
  const QuantizedRow<Q> out(rows, index);
  if constexpr (Q.scale != Along::none) {
    if (active) quantize_static(row, map, rows, out);
  } else if constexpr (Q.format.group == 0) {
    quantize_whole<Q, Lanes>(row, out, active, scratch);
  } else if constexpr (Map::held) {
    quantize_held_groups(row, out, active);
  } else {
    quantize_streamed_groups(row, out, Lanes / 32);
  }
}

}  // namespace cermet
