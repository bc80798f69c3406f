#include "kernel/cpu/tile_steps.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/tile_steps.cpp"
#include <hwy/foreach_target.h>

#include "base/error.hpp"
#include "kernel/cpu/pointwise/whole-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {

/// The first `count` elements, to nearest even, saturated; 0 for NaN.
HWY_INLINE void store_n(Floats v, std::int8_t* p, std::size_t count) {
  const FloatTag d;
  const auto nearest = hn::Round(hn::Min(hn::Max(v, hn::Set(d, -128.0f)), hn::Set(d, 127.0f)));
  const auto whole = hn::ConvertTo(IntTag(), hn::IfThenZeroElse(hn::IsNaN(v), nearest));
  const hn::Rebind<std::int8_t, FloatTag> narrow;
  HWY_ALIGN std::int8_t buffer[hn::MaxLanes(FloatTag())];
  hn::Store(hn::DemoteTo(narrow, whole), narrow, buffer);
  for (std::size_t i = 0; i < count; ++i) p[i] = buffer[i];
}

namespace {

/// y = function(operands) for every vector of a tile.
template <std::size_t count, class Function>
HWY_INLINE void for_tile(const TileOperand* operands, const TileTarget& y, Function&& function) {
  for (std::size_t r = 0; r < y.rows; ++r) {
    const float* from[count];
    for (std::size_t o = 0; o < count; ++o) from[o] = operands[o].data + r * operands[o].row_step;
    float* const to = y.data + r * y.row_step;
    for_vectors(y.columns, [&](std::size_t i, std::size_t n) HWY_ATTR {
      Floats values[count];
      for (std::size_t o = 0; o < count; ++o) values[o] = load_n(from[o] + i * operands[o].column_step, n);
      store_n(function(values), to + i, n);
    });
  }
}

HWY_INLINE Floats real_of(Floats bits) { return hn::ConvertTo(FloatTag(), hn::BitCast(IntTag(), bits)); }

void to_real(const TileOperand* operands, const TileTarget& y, const float*) {
  for_tile<1>(operands, y, [](const Floats* v) HWY_ATTR { return real_of(v[0]); });
}

void scale_integers(const TileOperand* operands, const TileTarget& y, const float*) {
  for_tile<3>(operands, y, [](const Floats* v) HWY_ATTR { return hn::Mul(v[2], hn::Mul(v[1], real_of(v[0]))); });
}

void scale(const TileOperand* operands, const TileTarget& y, const float*) {
  for_tile<3>(operands, y, [](const Floats* v) HWY_ATTR { return hn::Mul(v[2], hn::Mul(v[1], v[0])); });
}

void subtract_product(const TileOperand* operands, const TileTarget& y, const float*) {
  for_tile<3>(operands, y, [](const Floats* v) HWY_ATTR { return (Whole::of_bits(v[0]) - Whole::of_bits(v[1]) * Whole::of_bits(v[2])).bits(); });
}

template <class T>
void round_tile(const TileOperand* operands, const TileTarget& y, const float*) {
  for_tile<1>(operands, y, [](const Floats* v) HWY_ATTR {
    HWY_ALIGN T narrow[hn::MaxLanes(FloatTag())];
    store(v[0], narrow);
    return load(narrow);
  });
}

template <class T, bool sum>
void store_tile(const TileOperand* operands, const Rows& y, const TilePlace& place) {
  const TileOperand a = operands[0], b = operands[sum ? 1 : 0];
  for (std::int64_t r = 0; r < place.rows; ++r) {
    const float *left = a.data + static_cast<std::size_t>(r) * a.row_step, *right = b.data + static_cast<std::size_t>(r) * b.row_step;
    T* const to = reinterpret_cast<T*>(y.row(place.row + r)) + place.column;
    for_vectors(static_cast<std::size_t>(place.columns), [&](std::size_t i, std::size_t n) HWY_ATTR {
      Floats v = load_n(left + i * a.column_step, n);
      if constexpr (sum) v = hn::Add(v, load_n(right + i * b.column_step, n));
      store_n(v, to + i, n);
    });
  }
}

template <bool sum>
TileStore store_of(DType dtype) {
  switch (dtype) {
    case DType::i32:  // the bits of integers
    case DType::f32: return store_tile<float, sum>;
    case DType::bf16: return store_tile<format::bf16, sum>;
    case DType::f16: return store_tile<format::f16, sum>;
    case DType::i8: return store_tile<std::int8_t, sum>;
    default: assertion_failed("a type that tiles are stored in", __FILE__, __LINE__);
  }
}

}  // namespace

TileSteps find_tile_steps() {
  return {.to_real = to_real,
          .round_bf16 = round_tile<format::bf16>,
          .round_f16 = round_tile<format::f16>,
          .scale_integers = scale_integers,
          .scale = scale,
          .subtract_product = subtract_product};
}
TileStore find_tile_store(DType dtype, bool sum) { return sum ? store_of<true>(dtype) : store_of<false>(dtype); }

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cermet::cpu {

HWY_EXPORT(find_tile_steps);
HWY_EXPORT(find_tile_store);

TileSteps tile_steps() { return HWY_DYNAMIC_DISPATCH(find_tile_steps)(); }
TileStore tile_store(DType dtype, bool sum) { return HWY_DYNAMIC_DISPATCH(find_tile_store)(dtype, sum); }

}  // namespace cermet::cpu
#endif
