// Quantization of a row (tile/quantizer.cuh): one scale for the row, or one per group of columns.
#pragma once

#include "kernel/cuda/device/rowwise/reduce_row.cuh"
#include "kernel/cuda/device/rowwise/row_vectors.cuh"
#include "kernel/cuda/device/tile/quantizer.cuh"

namespace cermet {

/// The range of this thread's elements of a row.
template <QuantizedFormat F, class Row>
CERMET_DEVICE ValueRange thread_range(Row& row) {
  ValueRange range;
  row.each([&](int, int, const float(&v)[Row::width]) {
#pragma unroll
    for (int k = 0; k < Row::width; ++k) widen<F>(range, v[k]);
  });
  return range;
}

/// The range over the lanes of a row.
template <QuantizedFormat F, class Reducer>
CERMET_DEVICE ValueRange row_range(ValueRange range, Reducer& reduce) {
  if constexpr (!F.asymmetric) return {reduce.template operator()<Magnitude>(fabsf(range.high)), 0};
  const auto both = reduce.template pair<Magnitude, Magnitude>(fabsf(range.high), fabsf(range.low));
  return {both.first, both.second};
}

/// The range over `Lanes` neighbouring lanes, at most 32.
template <QuantizedFormat F, int Lanes>
CERMET_DEVICE ValueRange lanes_range(ValueRange range) {
  range.high = lanes_reduce<Magnitude, Lanes>(fabsf(range.high));
  if constexpr (F.asymmetric) range.low = lanes_reduce<Magnitude, Lanes>(fabsf(range.low));
  return range;
}

struct Quantization {
  QuantizedFormat format;
  bool exact = false;
};

/// Pointers of one row.
template <Quantization Q>
struct QuantizedRow {
  Element<Q.format.dtype>* values;
  float* scale;
  int32_t* zero_point;
  const float* bound;

  template <class Coord>
  CERMET_DEVICE QuantizedRow(const QuantizedRows& out, const Coord& coord)
      : values(coord.template of<Element<Q.format.dtype>>(out.values)),
        scale(coord.template of<float>(out.scale)),
        zero_point(Q.format.asymmetric ? coord.template of<int32_t>(out.zero_point) : nullptr),
        bound(out.bound) {}

  CERMET_DEVICE QuantizationParams params_of(ValueRange range) const {
    if constexpr (Q.format.bounded) range.high = range.high > *bound ? *bound : range.high;
    return quantization_params<Q.format>(range);
  }

  CERMET_DEVICE void store_scale(int group, QuantizationParams s) const {
    scale[group] = s.scale;
    if constexpr (Q.format.asymmetric) zero_point[group] = static_cast<int32_t>(s.zero_point);
  }
};

/// Quantizes a row. Scales near the ends of float32 have a loop of their own, which costs others nothing.
template <Quantization Q, class Row, class Quantizer>
CERMET_DEVICE void store_quantized(Row& row, const QuantizedRow<Q>& out, const Quantizer& quantizer) {
  if (__builtin_expect(quantizer.ordinary(), true))
    row.each([&](int, int64_t column, const float(&v)[Row::width]) {
      store_vector(out.values + column, quantizer.template quantize_scaled<true>(v));
    });
  else
    row.each([&](int, int64_t column, const float(&v)[Row::width]) {
      store_vector(out.values + column, quantizer.template quantize_scaled<false>(v));
    });
}

/// One scale for the row.
template <Quantization Q, class Row, class Reducer>
CERMET_DEVICE void quantize_whole(Row& row, const QuantizedRow<Q>& out, bool active, Reducer& reduce) {
  ValueRange range;
  if constexpr (Row::plain && !Q.format.asymmetric) range.high = row.raw->magnitude(row.partition);
  else range = thread_range<Q.format>(row);
  const QuantizationParams scale = out.params_of(row_range<Q.format>(range, reduce));
  const Quantizer<Q.format, Q.exact> quantizer(scale);
  if (!active) return;
  row.forget_values();
  store_quantized(row, out, quantizer);
  if (row.partition.lane == 0) out.store_scale(0, scale);
}

/// Groups of a row in registers: each lies in neighbouring lanes of a warp.
template <Quantization Q, class Row>
CERMET_DEVICE void quantize_groups_in_registers(Row& row, const QuantizedRow<Q>& out, bool active) {
  constexpr int width = Row::width, lanes = Q.format.group / width;
  static_assert(Q.format.group % width == 0 && lanes <= 32 && (lanes & (lanes - 1)) == 0);
#pragma unroll
  for (int i = 0; i < Row::Partition::vectors; ++i) {
    const bool inside = row.partition.inside(i);
    const int column = static_cast<int>(row.partition.column(i));
    float v[width];
    ValueRange range;
    if (inside) {
      row.load(i, column, v);
#pragma unroll
      for (int k = 0; k < width; ++k) widen<Q.format>(range, v[k]);
    }
    const QuantizationParams scale = out.params_of(lanes_range<Q.format, lanes>(range));
    const Quantizer<Q.format, Q.exact> quantizer(scale);
    if (!inside || !active) continue;
    store_vector(out.values + column, quantizer.quantize(v));
    if (column % Q.format.group == 0) out.store_scale(column / Q.format.group, scale);
  }
}

/// Groups of a row that is read again: a warp for each, twice over its columns.
template <Quantization Q, class Row>
CERMET_DEVICE void quantize_groups_from_memory(Row& row, const QuantizedRow<Q>& out, int warps) {
  constexpr int width = Row::width;
  const int lane = static_cast<int>(lane_index()),
            groups = static_cast<int>(div_up(row.partition.length, Q.format.group));
  for (int group = static_cast<int>(Row::Partition::Team::warp()); group < groups; group += warps) {
    const int begin = group * Q.format.group, end = min_of(begin + Q.format.group, row.partition.length);
    ValueRange range;
    float v[width];
    for (int64_t column = begin + lane * width; column < end; column += 32 * width) {
      row.load(0, column, v);
#pragma unroll
      for (int k = 0; k < width; ++k) widen<Q.format>(range, v[k]);
    }
    const QuantizationParams scale = out.params_of(lanes_range<Q.format, 32>(range));
    const Quantizer<Q.format, Q.exact> quantizer(scale);
    for (int64_t column = begin + lane * width; column < end; column += 32 * width) {
      row.load(0, column, v);
      store_vector(out.values + column, quantizer.quantize(v));
    }
    if (lane == 0) out.store_scale(group, scale);
  }
}

/// Writes the quantized values of a row and their scales.
template <Quantization Q, class Row, class Coord, class Reducer>
CERMET_DEVICE void quantize_row(Row& row, const QuantizedRows& rows, const Coord& coord, Reducer& reduce) {
  const QuantizedRow<Q> out(rows, coord);
  if constexpr (Q.format.group == 0) {
    quantize_whole<Q>(row, out, coord.active, reduce);
  } else if constexpr (Row::Partition::in_registers) {
    quantize_groups_in_registers(row, out, coord.active);
  } else {
    quantize_groups_from_memory(row, out, Row::Partition::lanes / 32);
  }
}

/// Of a row without a factor that all its values have, factor(sum of `part` over the row): it enters the scale, so that
/// both statistics take one reduction.
template <Quantization Q, class Row, class Coord, class Reducer, class Parts, class Factor>
CERMET_DEVICE void quantize_row_and_factor(Row& row, const QuantizedRows& rows, const Coord& coord, Reducer& reduce,
                                           const Parts& part, Factor factor) {
  static_assert(Q.format.group == 0 && !Q.format.asymmetric && !Q.exact);
  const ValueRange range = thread_range<Q.format>(row);
  const auto both = reduce.template pair<Sum, Magnitude>(part, fabsf(range.high));
  const float norm = factor(both.first);
  const QuantizationParams scale = quantization_params<Q.format>({both.second, 0});
  const Quantizer<Q.format, false> quantizer(scale);
  if (!coord.active) return;
  row.forget_values();
  const QuantizedRow<Q> out(rows, coord);
  store_quantized(row, out, quantizer);
  if (row.partition.lane == 0) out.store_scale(0, {row.partition.length == 0 ? 0.0f : scale.scale * norm, 0});
}

}  // namespace cermet
