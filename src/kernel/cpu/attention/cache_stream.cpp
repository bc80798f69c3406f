#include "kernel/cpu/attention/cache_stream.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/attention/cache_stream.cpp"
#include <hwy/foreach_target.h>

#include "format/fp8.hpp"
#include "format/value_columns.hpp"
#include "kernel/cpu/convert.hpp"
#include "kernel/cpu/vec-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {

/// Largest magnitude of a vector; NaN where it holds one.
float absolute_maximum(const float* x, std::size_t length) {
  auto largest = hn::Zero(FloatTag()), nan = hn::Zero(FloatTag());
  for_vectors(length, [&](std::size_t i, std::size_t n) HWY_ATTR {
    const auto v = hn::Abs(load_n(x + i, n));
    largest = hn::Max(largest, hn::IfThenZeroElse(hn::IsNaN(v), v));
    nan = hn::IfThenElse(hn::IsNaN(v), v, nan);
  });
  const float poison = sum_lanes(nan);  // 0, or NaN
  return poison + max_lanes(largest);
}

/// int8 values x / scale, rounded half to even, saturated; NaN gives 0.
void encode_int8(const float* x, float scale, std::int8_t* quantized, std::size_t length) {
  const FloatTag f;
  const hn::Rebind<std::int8_t, FloatTag> narrow;
  const auto divisor = hn::Set(f, scale);
  for_vectors(length, [&](std::size_t i, std::size_t n) HWY_ATTR {
    auto v = hn::Div(load_n(x + i, n), divisor);
    v = hn::IfThenZeroElse(hn::IsNaN(v), v);
    v = hn::Min(hn::Max(v, hn::Set(f, -128.0f)), hn::Set(f, 127.0f));
    HWY_ALIGN std::int8_t buffer[hn::MaxLanes(f)];
    hn::StoreU(hn::DemoteTo(narrow, hn::NearestInt(v)), narrow, buffer);
    std::copy_n(buffer, n, quantized + i);
  });
}

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cermet::cpu {

HWY_EXPORT(absolute_maximum);
HWY_EXPORT(encode_int8);

namespace {

void encode(const float* x, float scale, bool scaled, DType dtype, void* quantized, std::int64_t length) {
  const auto n = static_cast<std::size_t>(length);
  if (scaled && scale == 0) std::fill_n(static_cast<std::uint8_t*>(quantized), n, std::uint8_t{0});
  else if (dtype == DType::i8) HWY_DYNAMIC_DISPATCH(encode_int8)(x, scale, static_cast<std::int8_t*>(quantized), n);
  else if (dtype == DType::f8_e4m3)
    for (std::size_t i = 0; i < n; ++i) static_cast<format::e4m3*>(quantized)[i] = format::to_e4m3(x[i] / scale);
  else
    for (std::size_t i = 0; i < n; ++i) static_cast<format::e5m2*>(quantized)[i] = format::to_e5m2(x[i] / scale);
}

float largest_quantized(DType dtype) {
  return dtype == DType::i8 ? 127.0f : dtype == DType::f8_e4m3 ? format::e4m3_max : format::e5m2_max;
}

}  // namespace

void CacheStream::write(const float* x, std::int64_t slot, std::int64_t head) const {
  const std::int64_t length = cache.shape[3];
  if (dtypes::real.contains(cache.dtype))
    return real_converter(DType::f32, cache.dtype)(reinterpret_cast<const std::byte*>(x), target(slot, head), length);
  float scale = head_scales ? head_scales->as<const float>()[head * head_scale_step(*head_scales)] : 1.0f;
  if (token_scales) {
    scale =
        HWY_DYNAMIC_DISPATCH(absolute_maximum)(x, static_cast<std::size_t>(length)) / largest_quantized(cache.dtype);
    token_scales->as<float>()[offset(*token_scales, slot, head)] = scale;
  }
  if (cache.shape.rank() == 5) write_columns(x, scale, slot, head);
  else encode(x, scale, head_scales || token_scales, cache.dtype, target(slot, head), length);
}

void CacheStream::write_columns(const float* x, float scale, std::int64_t slot, std::int64_t head) const {
  constexpr int column = format::value_column, piece = 64;
  const std::int64_t length = cache.shape[3], block = cache.shape[2] * column, row = slot % block;
  std::byte* const to = cache.as<std::byte>() + slot / block * cache.strides[0] + head * cache.strides[1] +
                        row / column * cache.strides[2] + format::value_place(static_cast<int>(row % column));
  std::byte quantized[piece];
  for (std::int64_t first = 0; first < length; first += piece) {
    const std::int64_t count = std::min<std::int64_t>(piece, length - first);
    encode(x + first, scale, head_scales || token_scales, cache.dtype, quantized, count);
    for (std::int64_t d = 0; d < count; ++d) to[(first + d) * cache.strides[3]] = quantized[d];
  }
}

}  // namespace cermet::cpu
#endif
