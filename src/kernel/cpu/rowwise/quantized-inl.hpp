// Quantized values: tiles of float32 to int8 and fp8, and back. The bits are those of format/fp8.hpp and of rounding
// half to even. Include after <hwy/foreach_target.h>.
#if defined(CERMET_CODES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CERMET_CODES_INL
#undef CERMET_CODES_INL
#else
#define CERMET_CODES_INL
#endif

#include "format/fp8.hpp"
#include "kernel/cpu/tile-inl.hpp"
#include "kernel/kernel.hpp"

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {

using IntTag = hn::RebindToSigned<FloatTag>;
using Ints32 = hn::Vec<IntTag>;

/// Whole numbers saturated to [-128, 127]; NaN becomes 0.
HWY_INLINE Floats int8_values(Floats whole) {
  const FloatTag d;
  const auto limited = hn::Min(hn::Max(whole, hn::Set(d, -128.0f)), hn::Set(d, 127.0f));
  return hn::IfThenElseZero(hn::Eq(whole, whole), limited);
}
/// The same of any numbers, half to even.
HWY_INLINE Ints32 int8_codes(Floats v) { return hn::ConvertTo(IntTag(), int8_values(hn::Round(v))); }

/// See format::round_to_minifloat; `largest` is the bit pattern of the largest finite value.
template <int mantissa, int min_exponent, int largest>
HWY_INLINE Ints32 minifloat_quantized(Ints32 magnitude) {
  const IntTag d;
  const auto smallest_normal = hn::Set(d, (min_exponent + 127) << 23);
  const auto anchor = hn::Set(d, (min_exponent + 23 - mantissa + 127) << 23);
  const auto shifted = hn::BitCast(d, hn::Add(hn::BitCast(FloatTag(), magnitude), hn::BitCast(FloatTag(), anchor)));
  const auto subnormal = hn::Sub(shifted, anchor);
  constexpr int drop = 23 - mantissa;
  const auto even = hn::And(hn::ShiftRight<drop>(magnitude), hn::Set(d, 1));
  const auto rounded = hn::Add(magnitude, hn::Add(even, hn::Set(d, (1 << (drop - 1)) - 1)));
  const auto normal = hn::ShiftRight<drop>(hn::Add(hn::Sub(rounded, smallest_normal), hn::Set(d, 1 << 23)));
  return hn::Min(hn::IfThenElse(hn::Lt(magnitude, smallest_normal), subnormal, normal), hn::Set(d, largest));
}

HWY_INLINE Ints32 with_sign(Ints32 code, Ints32 bits) {
  return hn::Or(code, hn::And(hn::ShiftRight<24>(bits), hn::Set(IntTag(), 0x80)));
}

HWY_INLINE Ints32 e4m3_codes(Floats v) {
  const IntTag d;
  const auto bits = hn::BitCast(d, v), magnitude = hn::And(bits, hn::Set(d, 0x7fffffff)),
             infinity = hn::Set(d, 0x7f800000);
  const auto finite = minifloat_quantized<3, -6, 0x7e>(hn::Min(magnitude, hn::Set(d, 0x7f7fffff)));
  return with_sign(hn::IfThenElse(hn::Lt(magnitude, infinity), finite, hn::Set(d, 0x7f)), bits);
}

HWY_INLINE Ints32 e5m2_quantized(Floats v) {
  const IntTag d;
  const auto bits = hn::BitCast(d, v), magnitude = hn::And(bits, hn::Set(d, 0x7fffffff)),
             infinity = hn::Set(d, 0x7f800000);
  const auto finite = minifloat_quantized<2, -14, 0x7b>(hn::Min(magnitude, hn::Set(d, 0x7f7fffff)));
  const auto special = hn::IfThenElse(hn::Eq(magnitude, infinity), hn::Set(d, 0x7c), hn::Set(d, 0x7f));
  return with_sign(hn::IfThenElse(hn::Lt(magnitude, infinity), finite, special), bits);
}

/// Stores the first `count` lanes, narrowed to a type of one byte.
template <class T>
HWY_INLINE void store_narrow(Ints32 quantized, T* to, std::size_t count) {
  const hn::Rebind<T, FloatTag> narrow;
  const auto bytes = hn::DemoteTo(narrow, quantized);
  if (HWY_LIKELY(count == lanes())) return hn::StoreU(bytes, narrow, to);
  HWY_ALIGN T buffer[hn::MaxLanes(FloatTag())];
  hn::StoreU(bytes, narrow, buffer);
  for (std::size_t k = 0; k < count; ++k) to[k] = buffer[k];
}

/// Writes quantized values(v) for each vector of the tile; T is the byte type to which the results are narrowed.
template <class T, class Quantized>
HWY_INLINE void write_bytes(const float* tile, T* to, std::size_t n, Quantized quantized) {
  for_vectors(n, [&](std::size_t i, std::size_t count)
                     HWY_ATTR { store_narrow(quantized(load_n(tile + i, count)), to + i, count); });
}

/// Rounds n values to type i8, f8_e4m3 or f8_e5m2 at `to`.
inline void write_quantized(const float* tile, DType dtype, std::byte* to, std::size_t n) {
  auto* bytes = reinterpret_cast<std::uint8_t*>(to);
  switch (dtype) {
    case DType::i8:
      return write_bytes(tile, reinterpret_cast<std::int8_t*>(to), n, [](Floats v) HWY_ATTR { return int8_codes(v); });
    case DType::f8_e4m3: return write_bytes(tile, bytes, n, [](Floats v) HWY_ATTR { return e4m3_codes(v); });
    case DType::f8_e5m2: return write_bytes(tile, bytes, n, [](Floats v) HWY_ATTR { return e5m2_quantized(v); });
    default: assertion_failed("a code type", __FILE_NAME__, __LINE__);
  }
}

/// Decodes e4m3: its bits as those of a float 2^120 times smaller, where subnormal values are subnormal floats.
HWY_INLINE Floats e4m3_values(Ints32 code) {
  const IntTag d;
  const auto magnitude = hn::And(code, hn::Set(d, 0x7f));
  const auto finite = hn::Mul(hn::BitCast(FloatTag(), hn::ShiftLeft<20>(magnitude)), hn::Set(FloatTag(), 0x1p120f));
  const auto value =
      hn::IfThenElse(hn::Eq(magnitude, hn::Set(d, 0x7f)), hn::Set(d, 0x7fc00000), hn::BitCast(d, finite));
  return hn::BitCast(FloatTag(), hn::Or(value, hn::ShiftLeft<24>(hn::And(code, hn::Set(d, 0x80)))));
}

/// Decodes e5m2: the upper half of an f16, scaled like e4m3.
HWY_INLINE Floats e5m2_values(Ints32 code) {
  const IntTag d;
  const auto magnitude = hn::And(code, hn::Set(d, 0x7f));
  const auto finite =
      hn::BitCast(d, hn::Mul(hn::BitCast(FloatTag(), hn::ShiftLeft<21>(magnitude)), hn::Set(FloatTag(), 0x1p112f)));
  const auto special =
      hn::IfThenElse(hn::Eq(magnitude, hn::Set(d, 0x7c)), hn::Set(d, 0x7f800000), hn::Set(d, 0x7fc00000));
  const auto value = hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, 0x7c)), finite, special);
  return hn::BitCast(FloatTag(), hn::Or(value, hn::ShiftLeft<24>(hn::And(code, hn::Set(d, 0x80)))));
}

template <class T, class Values>
HWY_INLINE void read_bytes(const T* from, float* tile, std::size_t n, Values values) {
  const hn::Rebind<T, FloatTag> narrow;
  for_vectors(n, [&](std::size_t i, std::size_t count) HWY_ATTR {
    HWY_ALIGN T buffer[hn::MaxLanes(FloatTag())] = {};
    const T* source = from + i;
    if (count < lanes()) {
      for (std::size_t k = 0; k < count; ++k) buffer[k] = source[k];
      source = buffer;
    }
    store_n(values(hn::PromoteTo(IntTag(), hn::LoadU(narrow, source))), tile + i, count);
  });
}

/// n elements of type i8, f8_e4m3, f8_e5m2 or i32 as float32.
inline void read_quantized(const std::byte* from, DType dtype, float* tile, std::size_t n) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(from);
  switch (dtype) {
    case DType::i8:
      return read_bytes(reinterpret_cast<const std::int8_t*>(from), tile, n,
                        [](Ints32 v) HWY_ATTR { return hn::ConvertTo(FloatTag(), v); });
    case DType::f8_e4m3: return read_bytes(bytes, tile, n, [](Ints32 v) HWY_ATTR { return e4m3_values(v); });
    case DType::f8_e5m2: return read_bytes(bytes, tile, n, [](Ints32 v) HWY_ATTR { return e5m2_values(v); });
    case DType::i32: {
      const auto* integers = reinterpret_cast<const std::int32_t*>(from);
      for (std::size_t i = 0; i < n; ++i) tile[i] = static_cast<float>(integers[i]);
      return;
    }
    default: assertion_failed("a code type", __FILE_NAME__, __LINE__);
  }
}

/// A scale or offset seen along one row: element i belongs to entry i / step; step 0 means one entry for all. Entries
/// are f32 or i32.
struct AlongRow {
  const std::byte* data = nullptr;
  DType dtype = DType::f32;
  std::size_t step = 0;

  explicit operator bool() const { return data != nullptr; }
  float entry(std::size_t i) const {
    return dtype == DType::i32 ? static_cast<float>(reinterpret_cast<const std::int32_t*>(data)[i])
                               : reinterpret_cast<const float*>(data)[i];
  }
  /// The entries of elements [first, first + n), one for each.
  const float* read(std::size_t first, std::size_t n, TileBuffer& buffer) const {
    if (step == 1 && dtype == DType::f32) return reinterpret_cast<const float*>(data) + first;
    for (std::size_t i = 0; i < n;) {
      const std::size_t index = step == 0 ? 0 : (first + i) / step;
      const std::size_t end = step == 0 ? n : HWY_MIN(n, (index + 1) * step - first);
      const float value = entry(index);
      for (; i < end; ++i) buffer.data[i] = value;
    }
    return buffer.data;
  }
};

/// A scale or offset operand that is one number or has a number per element of a row.
inline AlongRow scalar_or_channel(const LaunchArgs& args, std::size_t operand) {
  if (!args.has(operand)) return {};
  const TensorView& view = args.inputs[operand];
  return {view.as<std::byte>(), view.dtype, view.elements() == 1 ? std::size_t{0} : std::size_t{1}};
}

/// x / scale + offset, or x * scale + offset, in place over a tile; each operation rounds.
inline void scale_tile(const float* x, const float* scale, const float* offset, bool divide, float* y, std::size_t n) {
  for_vectors(n, [&](std::size_t i, std::size_t count) HWY_ATTR {
    const auto v = load_n(x + i, count), s = load_n(scale + i, count, 1.0f);
    auto scaled = divide ? hn::Div(v, s) : hn::Mul(v, s);
    if (offset) scaled = hn::Add(scaled, load_n(offset + i, count));
    store_n(scaled, y + i, count);
  });
}

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
