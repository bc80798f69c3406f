// Dynamic quantization of a row whose values come tile by tile: from memory, or from the operator before it. Include
// after <hwy/foreach_target.h>.
#if defined(CERMET_QUANTIZE_ROW_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CERMET_QUANTIZE_ROW_INL
#undef CERMET_QUANTIZE_ROW_INL
#else
#define CERMET_QUANTIZE_ROW_INL
#endif

#include "kernel/cpu/math-inl.hpp"
#include "kernel/cpu/rowwise/quantized-inl.hpp"
#include "kernel/cpu/rowwise/row_steps.hpp"
#include "op/quantization.hpp"
#include "op/schema/reference.hpp"

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {

/// Least and largest of 0 and the values seen; of their magnitudes for a symmetric format. NaN stays.
struct ValueRange {
  float low = 0, high = 0;

  void merge(float l, float h) {
    if (!(low <= l)) low = low != low ? low : l;
    if (!(high >= h)) high = high != high ? high : h;
  }
};

inline void widen(ValueRange& range, const float* values, std::size_t n, bool asymmetric) {
  Real low(0.0), high(0.0);
  for_vectors(n, [&](std::size_t i, std::size_t count) HWY_ATTR {
    const Real v = load_n(values + i, count);
    if (asymmetric) low = minimum(low, v);
    high = maximum(high, asymmetric ? v : abs(v));
  });
  HWY_ALIGN float lows[hn::MaxLanes(FloatTag())], highs[hn::MaxLanes(FloatTag())];
  hn::Store(low.v, FloatTag(), lows);
  hn::Store(high.v, FloatTag(), highs);
  for (std::size_t i = 0; i < lanes(); ++i) range.merge(lows[i], highs[i]);
}

/// Quantizes n values that share a scale; see quantization_params.
inline void write_scaled(const float* values, QuantizationParams scale, DType dtype, std::byte* quantized,
                         std::size_t n) {
  TileBuffer scaled;
  if (scale.scale == 0) {
    std::memset(quantized, 0, n);
    return;
  }
  const auto divisor = hn::Set(FloatTag(), scale.scale), zero = hn::Set(FloatTag(), scale.zero_point);
  for_vectors(n, [&](std::size_t i, std::size_t count) HWY_ATTR {
    store_n(hn::Add(hn::Div(load_n(values + i, count), divisor), zero), scaled.data + i, count);
  });
  write_quantized(scaled.data, dtype, quantized, n);
}

/// Calls body(first, n) for tiles of [begin, end).
template <class Body>
HWY_INLINE void for_tiles_of(std::size_t begin, std::size_t end, Body&& body) {
  for (std::size_t first = begin; first < end; first += tile_size) body(first, HWY_MIN(tile_size, end - first));
}

/// Row `row` of the quantized values and of their scales (result `scale_output`, with zero points after it): a row of
/// scales where there are groups, else one element.
inline QuantizedRow quantized_row(const LaunchArgs& args, const Rows& quantized, std::int64_t row,
                                  std::size_t scale_output, const QuantizedFormat& format) {
  const auto entries = [&](const TensorView& view) {
    return format.group != 0 ? Rows(view).row(row) : view.as<std::byte>() + element_offset(view, row) * 4;
  };
  return {quantized.row(row), reinterpret_cast<float*>(entries(args.outputs[scale_output])),
          format.asymmetric ? reinterpret_cast<std::int32_t*>(entries(args.outputs[scale_output + 1])) : nullptr};
}

/// Quantizes a row of `length` values. source(first, n) gives a tile of them as const float*; it is called twice for
/// each value, so it must not change what it reads.
template <class Source>
HWY_INLINE void quantize_row(Source&& source, std::size_t length, const QuantizedFormat& format,
                             const QuantizedRow& out) {
  const auto step = format.group == 0 ? length : static_cast<std::size_t>(format.group);
  const auto groups = static_cast<std::size_t>(
      groups_in_row(format, static_cast<std::int64_t>(length)));  // none in an empty row of groups
  for (std::size_t group = 0; group < groups; ++group) {
    const std::size_t begin = group * step, end = HWY_MIN(length, begin + step);
    ValueRange range;
    for_tiles_of(begin, end, [&](std::size_t first, std::size_t n) HWY_ATTR {
      widen(range, source(first, n), n, format.asymmetric);
    });
    const QuantizationParams scale = quantization_params(range.low, range.high, format);
    out.scales[group] = scale.scale;
    if (out.zero_points) out.zero_points[group] = static_cast<std::int32_t>(scale.zero_point);
    for_tiles_of(begin, end, [&](std::size_t first, std::size_t n) HWY_ATTR {
      write_scaled(source(first, n), scale, format.dtype, out.quantized + first, n);
    });
  }
}

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
