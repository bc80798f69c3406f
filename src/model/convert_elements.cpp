#include "model/convert_elements.hpp"

#include "base/error.hpp"
#include "format/element.hpp"
#include "format/half.hpp"

namespace cermet {
namespace {

float widen(float x) { return x; }
float widen(format::bf16 x) { return format::to_float(x); }
float widen(format::f16 x) { return format::to_float(x); }
void narrow(float x, float& y) { y = x; }
void narrow(float x, format::bf16& y) { y = format::to_bf16(x); }
void narrow(float x, format::f16& y) { y = format::to_f16(x); }

template <class From, class To>
void convert(const std::byte* from, std::byte* to, std::int64_t count) {
  const From* source = reinterpret_cast<const From*>(from);
  To* destination = reinterpret_cast<To*>(to);
  for (std::int64_t i = 0; i < count; ++i) narrow(widen(source[i]), destination[i]);
}

using Convert = void (*)(const std::byte*, std::byte*, std::int64_t);

template <class From>
Convert converter_from(DType to) {
  switch (to) {
    case DType::f32: return convert<From, float>;
    case DType::bf16: return convert<From, format::bf16>;
    case DType::f16: return convert<From, format::f16>;
    default: return nullptr;
  }
}

/// Scales as an NPU's products read them: the bits of a float in the low half of an int64.
void unpack_scales(const std::byte* from, std::byte* to, std::int64_t count) {
  const auto* source = reinterpret_cast<const std::int64_t*>(from);
  float* destination = reinterpret_cast<float*>(to);
  for (std::int64_t i = 0; i < count; ++i)
    destination[i] = format::float_from_bits(static_cast<std::uint32_t>(source[i]));
}

/// Rounds once.
template <DType to_type>
void narrow_doubles(const std::byte* from, std::byte* to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i)
    format::store_element(to, to_type, i, format::load_element(from, DType::f64, i));
}

Convert converter(DType from, DType to) {
  switch (from) {
    case DType::i64: return to == DType::f32 ? unpack_scales : nullptr;
    case DType::f32: return converter_from<float>(to);
    case DType::bf16: return converter_from<format::bf16>(to);
    case DType::f16: return converter_from<format::f16>(to);
    case DType::f64:
      if (to == DType::f32) return narrow_doubles<DType::f32>;
      if (to == DType::bf16) return narrow_doubles<DType::bf16>;
      return to == DType::f16 ? narrow_doubles<DType::f16> : nullptr;
    default: return nullptr;
  }
}

}  // namespace

void convert_elements(DType from, const std::byte* source, DType to, std::byte* destination, std::int64_t count) {
  const Convert convert = converter(from, to);
  CERMET_ASSERT(convert != nullptr);
  convert(source, destination, count);
}

}  // namespace cermet
