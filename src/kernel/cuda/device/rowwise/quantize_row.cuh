// The last step of a row that is quantized: one scale for the row, or one per group of columns.
#pragma once

#include "kernel/cuda/device/rowwise/codes.cuh"
#include "kernel/cuda/device/rowwise/quantize_row.hpp"

namespace cermet {

struct Quantization {
  CodeFormat format;
  bool exact = false;
};

/// Pointers of one row.
template <Quantization Q>
struct QuantizedRow {
  Element<Q.format.dtype>* codes;
  float* scale;
  int32_t* zero_point;

  template <class Place>
  CERMET_DEVICE QuantizedRow(const QuantizedRows& out, const Place& place)
      : codes(place.template of<Element<Q.format.dtype>>(out.codes)),
        scale(place.template of<float>(out.scale)),
        zero_point(Q.format.asymmetric ? place.template of<int32_t>(out.zero_point) : nullptr) {}

  CERMET_DEVICE void store_scale(int group, CodeScale s) const {
    scale[group] = s.scale;
    if constexpr (Q.format.asymmetric) zero_point[group] = static_cast<int32_t>(s.zero_point);
  }
};

/// Quantizes a row. Scales near the ends of float32 have a loop of their own, which costs others nothing.
template <Quantization Q, class Row, class Quantizer>
CERMET_DEVICE void store_codes(Row& row, const QuantizedRow<Q>& out, const Quantizer& quantizer) {
  if (__builtin_expect(quantizer.ordinary(), true))
    row.each([&](int, int64_t column, const float(&v)[Row::width]) {
      store_vector(out.codes + column, quantizer.template scaled_codes<true>(v));
    });
  else
    row.each([&](int, int64_t column, const float(&v)[Row::width]) {
      store_vector(out.codes + column, quantizer.template scaled_codes<false>(v));
    });
}

/// One scale for the row.
template <Quantization Q, class Row, class Reducer>
CERMET_DEVICE void quantize_whole(Row& row, const QuantizedRow<Q>& out, bool active, Reducer& reduce) {
  ValueRange range;
  if constexpr (Row::plain && !Q.format.asymmetric) {
    range.high = row.raw->magnitude(row.map);
  } else {
    row.each([&](int, int, const float(&v)[Row::width]) {
#pragma unroll
      for (int k = 0; k < Row::width; ++k) widen<Q.format>(range, v[k]);
    });
  }
  const CodeScale scale = code_scale<Q.format>(row_range<Q.format>(range, reduce));
  const Quantizer<Q.format, Q.exact> quantizer(scale);
  if (!active) return;
  row.forget_values();
  store_codes(row, out, quantizer);
  if (row.map.lane == 0) out.store_scale(0, scale);
}

/// Groups of a row in registers: each lies in neighbouring lanes of a warp.
template <Quantization Q, class Row>
CERMET_DEVICE void quantize_held_groups(Row& row, const QuantizedRow<Q>& out, bool active) {
  constexpr int width = Row::width, lanes = Q.format.group / width;
  static_assert(Q.format.group % width == 0 && lanes <= 32 && (lanes & (lanes - 1)) == 0);
#pragma unroll
  for (int i = 0; i < Row::Map::vectors; ++i) {
    const bool inside = row.map.inside(i);
    const int column = static_cast<int>(row.map.column(i));
    float v[width];
    ValueRange range;
    if (inside) {
      row.load(i, column, v);
#pragma unroll
      for (int k = 0; k < width; ++k) widen<Q.format>(range, v[k]);
    }
    const CodeScale scale = code_scale<Q.format>(lanes_range<Q.format, lanes>(range));
    const Quantizer<Q.format, Q.exact> quantizer(scale);
    if (!inside || !active) continue;
    store_vector(out.codes + column, quantizer.codes(v));
    if (column % Q.format.group == 0) out.store_scale(column / Q.format.group, scale);
  }
}

/// Groups of a row that is read again: a warp for each, twice over its columns.
template <Quantization Q, class Row>
CERMET_DEVICE void quantize_streamed_groups(Row& row, const QuantizedRow<Q>& out, int warps) {
  constexpr int width = Row::width;
  const int lane = static_cast<int>(lane_index()), groups = static_cast<int>(div_up(row.map.length, Q.format.group));
  for (int group = static_cast<int>(Row::Map::Team::warp()); group < groups; group += warps) {
    const int begin = group * Q.format.group, end = min_of(begin + Q.format.group, row.map.length);
    ValueRange range;
    float v[width];
    for (int64_t column = begin + lane * width; column < end; column += 32 * width) {
      row.load(0, column, v);
#pragma unroll
      for (int k = 0; k < width; ++k) widen<Q.format>(range, v[k]);
    }
    const CodeScale scale = code_scale<Q.format>(lanes_range<Q.format, 32>(range));
    const Quantizer<Q.format, Q.exact> quantizer(scale);
    for (int64_t column = begin + lane * width; column < end; column += 32 * width) {
      row.load(0, column, v);
      store_vector(out.codes + column, quantizer.codes(v));
    }
    if (lane == 0) out.store_scale(group, scale);
  }
}

/// Writes the quantized values of a row and their scales.
template <Quantization Q, class Row, class Reducer>
CERMET_DEVICE void quantize_row(Row& row, const QuantizedRows& rows, const RowPlace<typename Row::Map>& place,
                                Reducer& reduce) {
  const QuantizedRow<Q> out(rows, place);
  if constexpr (Q.format.group == 0) {
    quantize_whole<Q>(row, out, place.active, reduce);
  } else if constexpr (Row::Map::held) {
    quantize_held_groups(row, out, place.active);
  } else {
    quantize_streamed_groups(row, out, Row::Map::lanes / 32);
  }
}

/// Of a row without a factor that all its values have, factor(sum of `part` over the row): it enters the scale, so that
/// both statistics take one reduction.
template <Quantization Q, class Row, class Reducer, class Parts, class Factor>
CERMET_DEVICE void quantize_row_and_factor(Row& row, const QuantizedRows& rows,
                                           const RowPlace<typename Row::Map>& place, Reducer& reduce, const Parts& part,
                                           Factor factor) {
  static_assert(Q.format.group == 0 && !Q.format.asymmetric && !Q.exact);
  ValueRange range;
  row.each([&](int, int, const float(&v)[Row::width]) {
#pragma unroll
    for (int k = 0; k < Row::width; ++k) widen<Q.format>(range, v[k]);
  });
  const auto both = reduce.template pair<Sum, Magnitude>(part, fabsf(range.high));
  const float norm = factor(both.first);
  const CodeScale scale = code_scale<Q.format>({both.second, 0});
  const Quantizer<Q.format, false> quantizer(scale);
  if (!place.active) return;
  row.forget_values();
  const QuantizedRow<Q> out(rows, place);
  store_codes(row, out, quantizer);
  if (row.map.lane == 0) out.store_scale(0, {row.map.length == 0 ? 0.0f : scale.scale * norm, 0});
}

}  // namespace cermet
