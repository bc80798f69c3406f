// Vector primitives over Google Highway, compiled once per instruction set: include after <hwy/foreach_target.h>.
// Kernels compute in float32 whatever the storage type; Load and Store convert at the edge, with one rounding to
// nearest even.
#if defined(CERMET_VEC_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CERMET_VEC_INL
#undef CERMET_VEC_INL
#else
#define CERMET_VEC_INL
#endif

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include <type_traits>

#include "base/dtype.hpp"
#include "format/half.hpp"

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::ScalableTag<float>;
using Floats = hn::Vec<FloatTag>;

HWY_INLINE std::size_t lanes() { return hn::Lanes(FloatTag()); }

/// Loads lanes() elements as float32.
HWY_INLINE Floats load(const float* p) { return hn::LoadU(FloatTag(), p); }
HWY_INLINE Floats load(const format::bf16* p) {
  const hn::Rebind<std::uint16_t, FloatTag> half;
  const hn::RebindToUnsigned<FloatTag> wide;
  return hn::BitCast(
      FloatTag(), hn::ShiftLeft<16>(hn::PromoteTo(wide, hn::LoadU(half, reinterpret_cast<const std::uint16_t*>(p)))));
}
HWY_INLINE Floats load(const format::f16* p) {
#if HWY_TARGET == HWY_EMU128 || HWY_TARGET == HWY_SCALAR
  // Highway's portable promotion makes numbers of infinity and NaN.
  HWY_ALIGN float buffer[hn::MaxLanes(FloatTag())];
  for (std::size_t i = 0; i < hn::Lanes(FloatTag()); ++i) buffer[i] = format::to_float(p[i]);
  return hn::Load(FloatTag(), buffer);
#else
  const hn::Rebind<hwy::float16_t, FloatTag> half;
  return hn::PromoteTo(FloatTag(), hn::LoadU(half, reinterpret_cast<const hwy::float16_t*>(p)));
#endif
}

/// Stores lanes() elements, rounded to nearest even.
HWY_INLINE void store(Floats v, float* p) { hn::StoreU(v, FloatTag(), p); }
HWY_INLINE void store(Floats v, format::bf16* p) {
  const hn::RebindToUnsigned<FloatTag> wide;
  const hn::Rebind<std::uint16_t, FloatTag> half;
  const auto bits = hn::BitCast(wide, v);
  const auto even = hn::And(hn::ShiftRight<16>(bits), hn::Set(wide, 1));
  const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(even, hn::Set(wide, 0x7fff))));
  const auto quiet = hn::Or(hn::ShiftRight<16>(bits), hn::Set(wide, 0x40));
  const auto kept = hn::IfThenElse(hn::RebindMask(wide, hn::IsNaN(v)), quiet, rounded);
  // Only 16 bits are left, so the signed conversion of x86 narrows without saturating once the sign is extended.
  const hn::RebindToSigned<FloatTag> wide_signed;
  const hn::Rebind<std::int16_t, FloatTag> half_signed;
  const auto extended = hn::ShiftRight<16>(hn::ShiftLeft<16>(hn::BitCast(wide_signed, kept)));
  hn::StoreU(hn::BitCast(half, hn::DemoteTo(half_signed, extended)), half, reinterpret_cast<std::uint16_t*>(p));
}
HWY_INLINE void store(Floats v, format::f16* p) {
#if HWY_TARGET == HWY_EMU128 || HWY_TARGET == HWY_SCALAR
  // Highway's portable demotion truncates; ours rounds.
  HWY_ALIGN float buffer[hn::MaxLanes(FloatTag())];
  hn::Store(v, FloatTag(), buffer);
  for (std::size_t i = 0; i < lanes(); ++i) p[i] = format::to_f16(buffer[i]);
#else
  const hn::Rebind<hwy::float16_t, FloatTag> half;
  hn::StoreU(hn::DemoteTo(half, v), half, reinterpret_cast<hwy::float16_t*>(p));
#endif
}

/// Loads `count` < lanes() elements; the rest is `fill`. Never reads past the array.
template <class T>
HWY_INLINE Floats load_tail(const T* p, std::size_t count, float fill = 0.0f) {
  if constexpr (std::is_same_v<T, float> && HWY_MEM_OPS_MIGHT_FAULT == 0) {
    const auto mask = hn::FirstN(FloatTag(), count);
    return hn::IfThenElse(mask, hn::MaskedLoad(mask, FloatTag(), p), hn::Set(FloatTag(), fill));
  }
  HWY_ALIGN float buffer[hn::MaxLanes(FloatTag())];
  for (std::size_t i = 0; i < lanes(); ++i) {
    if constexpr (sizeof(T) == 4) buffer[i] = i < count ? p[i] : fill;
    else buffer[i] = i < count ? format::to_float(p[i]) : fill;
  }
  return hn::Load(FloatTag(), buffer);
}

/// Stores the first `count` < lanes() elements. Never writes past the array.
template <class T>
HWY_INLINE void store_tail(Floats v, T* p, std::size_t count) {
  if constexpr (std::is_same_v<T, float> && HWY_MEM_OPS_MIGHT_FAULT == 0)
    return hn::BlendedStore(v, hn::FirstN(FloatTag(), count), FloatTag(), p);
  T buffer[hn::MaxLanes(FloatTag())];
  store(v, buffer);
  for (std::size_t i = 0; i < count; ++i) p[i] = buffer[i];
}

/// v, or `low` where it is less; a NaN stays.
HWY_INLINE Floats at_least(Floats v, Floats low) {
#if HWY_TARGET <= HWY_AVX2 && HWY_ARCH_X86
  return hn::Max(low, v);  // the second operand is the result where either is NaN
#else
  return hn::IfThenElse(hn::Lt(v, low), low, v);
#endif
}
/// v, or `high` where it is greater; a NaN stays.
HWY_INLINE Floats at_most(Floats v, Floats high) {
#if HWY_TARGET <= HWY_AVX2 && HWY_ARCH_X86
  return hn::Min(high, v);
#else
  return hn::IfThenElse(hn::Gt(v, high), high, v);
#endif
}
/// v within [low, high]; a NaN stays.
HWY_INLINE Floats clamp(Floats v, Floats low, Floats high) { return at_most(at_least(v, low), high); }

HWY_INLINE float sum_lanes(Floats v) { return hn::GetLane(hn::SumOfLanes(FloatTag(), v)); }
HWY_INLINE float max_lanes(Floats v) { return hn::GetLane(hn::MaxOfLanes(FloatTag(), v)); }

/// Calls body(offset, Full) for whole vectors and once with the tail's element count.
/// body(std::size_t offset, std::size_t count): count == lanes() except possibly in the last call.
template <class Body>
HWY_INLINE void for_vectors(std::size_t length, Body&& body) {
  const std::size_t step = lanes();
  std::size_t i = 0;
  for (; i + step <= length; i += step) body(i, step);
  if (i < length) body(i, length - i);
}

/// load or load_tail by the count that for_vectors gives.
template <class T>
HWY_INLINE Floats load_n(const T* p, std::size_t count, float fill = 0.0f) {
  return HWY_LIKELY(count == lanes()) ? load(p) : load_tail(p, count, fill);
}
template <class T>
HWY_INLINE void store_n(Floats v, T* p, std::size_t count) {
  if (HWY_LIKELY(count == lanes())) store(v, p);
  else store_tail(v, p, count);
}

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
