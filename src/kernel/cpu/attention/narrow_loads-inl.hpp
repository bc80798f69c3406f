// Elements of 8-bit caches as float32, all of them exactly: include after <hwy/foreach_target.h>.
#if defined(CERMET_NARROW_LOADS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CERMET_NARROW_LOADS_INL
#undef CERMET_NARROW_LOADS_INL
#else
#define CERMET_NARROW_LOADS_INL
#endif

#include <limits>

#include "format/fp8.hpp"
#include "kernel/cpu/vec-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {

HWY_INLINE Floats load(const std::int8_t* p) {
  const hn::Rebind<std::int8_t, FloatTag> narrow;
  const hn::Rebind<std::int32_t, FloatTag> wide;
  return hn::ConvertTo(FloatTag(), hn::PromoteTo(wide, hn::LoadU(narrow, p)));
}

HWY_INLINE Floats load(const format::e4m3* p) {
  const FloatTag f;
  const hn::Rebind<std::uint8_t, FloatTag> narrow;
  const hn::RebindToUnsigned<FloatTag> wide;
  const auto bits = hn::PromoteTo(wide, hn::LoadU(narrow, reinterpret_cast<const std::uint8_t*>(p)));
  const auto magnitude = hn::And(bits, hn::Set(wide, 0x7f));
  // With float32's exponent bias; what has no leading 1 (below 8) got one of 2^-7.
  const auto x = hn::BitCast(f, hn::Add(hn::ShiftLeft<20>(magnitude), hn::Set(wide, 120u << 23)));
  const auto subnormal = hn::RebindMask(f, hn::Lt(magnitude, hn::Set(wide, 8)));
  const auto nan = hn::RebindMask(f, hn::Eq(magnitude, hn::Set(wide, 0x7f)));
  const auto value = hn::IfThenElse(subnormal, hn::MulAdd(x, hn::Set(f, 2.0f), hn::Set(f, -0x1p-6f)), x);
  const auto sign = hn::BitCast(f, hn::ShiftLeft<24>(hn::Sub(bits, magnitude)));
  return hn::Or(hn::IfThenElse(nan, hn::Set(f, std::numeric_limits<float>::quiet_NaN()), value), sign);
}

/// The upper half of an f16.
HWY_INLINE Floats load(const format::e5m2* p) {
  const hn::Rebind<std::uint8_t, FloatTag> narrow;
  const hn::Rebind<std::uint16_t, FloatTag> half;
  const auto bits = hn::ShiftLeft<8>(hn::PromoteTo(half, hn::LoadU(narrow, reinterpret_cast<const std::uint8_t*>(p))));
#if HWY_TARGET == HWY_EMU128 || HWY_TARGET == HWY_SCALAR
  format::f16 buffer[hn::MaxLanes(FloatTag())];
  hn::StoreU(bits, half, reinterpret_cast<std::uint16_t*>(buffer));
  return load(buffer);
#else
  return hn::PromoteTo(FloatTag(), hn::BitCast(hn::Rebind<hwy::float16_t, FloatTag>(), bits));
#endif
}

inline float to_float(std::int8_t x) { return x; }

/// A run of 8-bit elements as float32.
template <class T>
void widen_run(const std::byte* from, std::byte* to, std::int64_t count) {
  const T* x = reinterpret_cast<const T*>(from);
  auto* y = reinterpret_cast<float*>(to);
  const auto step = static_cast<std::int64_t>(lanes());
  std::int64_t i = 0;
  for (; i + step <= count; i += step) store(load(x + i), y + i);
  for (; i < count; ++i) y[i] = to_float(x[i]);
}

/// The same as bf16, which holds them exactly.
template <class T>
void widen_run_to_bf16(const std::byte* from, std::byte* to, std::int64_t count) {
  const hn::RebindToUnsigned<FloatTag> wide;
  const hn::Rebind<std::uint16_t, FloatTag> half;
  const T* x = reinterpret_cast<const T*>(from);
  auto* y = reinterpret_cast<std::uint16_t*>(to);
  const auto step = static_cast<std::int64_t>(lanes());
  std::int64_t i = 0;
  for (; i + step <= count; i += step)
    hn::StoreU(hn::TruncateTo(half, hn::ShiftRight<16>(hn::BitCast(wide, load(x + i)))), half, y + i);
  for (; i < count; ++i) y[i] = format::to_bf16(to_float(x[i])).bits;
}

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
