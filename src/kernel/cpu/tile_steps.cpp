#include "kernel/cpu/tile_steps.hpp"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/tile_steps.cpp"
#include <hwy/foreach_target.h>

#include "kernel/cpu/pointwise/shared_scale-inl.hpp"
#include "kernel/cpu/pointwise/whole-inl.hpp"
#include "kernel/cpu/rowwise/quantized-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {

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
  for_tile<3>(operands, y, [](const Floats* v) HWY_ATTR {
    return (Whole::of_bits(v[0]) - Whole::of_bits(v[1]) * Whole::of_bits(v[2])).bits();
  });
}

void scale_shifted_integers(const TileOperand* operands, const TileTarget& y, const float*) {
  for_tile<5>(operands, y, [](const Floats* v) HWY_ATTR {
    return hn::Mul(v[4],
                   hn::Mul(v[3], real_of((Whole::of_bits(v[0]) - Whole::of_bits(v[1]) * Whole::of_bits(v[2])).bits())));
  });
}

/// A value, or the sum of two.
template <bool sum>
HWY_INLINE Floats value_of(const Floats* v) {
  if constexpr (sum) return hn::Add(v[0], v[1]);
  else return v[0];
}

/// Whether an operand is a number, of which `data` has vectors.
bool is_number(const TileOperand& o) { return o.row_step == 0 && o.column_step == 0; }

/// See TileSteps::requantize.
template <bool sum, bool whole_shift>
void requantize(const TileOperand* operands, const TileTarget& y, const float*) {
  constexpr std::size_t values = sum ? 2 : 1;
  const auto shift_of = [](Floats bits) HWY_ATTR {
    if constexpr (whole_shift) return real_of(bits);
    else return bits;
  };
  const TileOperand* const p = operands + values;
  const float scale = *p[0].data, zero_point = *p[1].data,
              shift = hn::GetLane(shift_of(hn::Set(FloatTag(), *p[2].data)));
  if (std::all_of(p, p + 4, is_number) && SharedScale::takes(scale) && std::abs(shift) <= 128 &&
      std::nearbyint(shift) == shift) {
    const SharedScale quantized(scale, zero_point);
    // Whole numbers, so that the zero points are added at once.
    const Floats anchor = hn::Set(FloatTag(), SharedScale::anchor - zero_point + shift), factor = load(p[3].data),
                 of_nan = hn::Set(FloatTag(), 0 - shift);
    return for_tile<values>(operands, y, [&](const Floats* v) HWY_ATTR {
      const Floats x = value_of<sum>(v), code = hn::Sub(quantized(x), anchor);
      return hn::Mul(hn::IfThenElse(hn::Eq(x, x), code, of_nan), factor);
    });
  }
  for_tile<values + 4>(operands, y, [&](const Floats* v) HWY_ATTR {
    const Floats* const w = v + values;
    const Floats quantized = int8_values(hn::Add(hn::Round(hn::Div(value_of<sum>(v), w[0])), w[1]));
    return hn::Mul(hn::Sub(quantized, shift_of(w[2])), w[3]);
  });
}

void choose(const TileOperand* operands, const TileTarget& y, const float*) {
  for_tile<3>(operands, y,
              [](const Floats* v) HWY_ATTR { return hn::IfThenElse(hn::Ne(v[0], hn::Zero(FloatTag())), v[1], v[2]); });
}

template <class T>
void round_tile(const TileOperand* operands, const TileTarget& y, const float*) {
  for_tile<1>(operands, y, [](const Floats* v) HWY_ATTR {
    HWY_ALIGN T narrow[hn::MaxLanes(FloatTag())];
    store(v[0], narrow);
    return load(narrow);
  });
}

/// Quantized values, through bytes.
template <DType dtype>
void round_quantized(const TileOperand* operands, const TileTarget& y, const float*) {
  TileBuffer wide;
  std::byte narrow[tile_size];
  for (std::size_t r = 0; r < y.rows; ++r) {
    const TileOperand row{operands[0].data + r * operands[0].row_step, 0, operands[0].column_step};
    for_tile<1>(&row, {wide.data, 0, 1, y.columns}, [](const Floats* v) HWY_ATTR { return v[0]; });
    write_quantized(wide.data, dtype, narrow, y.columns);
    read_quantized(narrow, dtype, y.data + r * y.row_step, y.columns);
  }
}

template <DType dtype>
void read_run(const std::byte* from, std::byte* to, std::int64_t count) {
  auto* const y = reinterpret_cast<float*>(to);
  if constexpr (dtype == DType::u8 || dtype == DType::boolean) {
    for (std::int64_t i = 0; i < count; ++i) {
      const auto byte = static_cast<std::uint8_t>(from[i]);
      y[i] = dtype == DType::u8 ? static_cast<float>(byte) : byte != 0 ? 1.0f : 0.0f;
    }
  } else if constexpr (dtype == DType::i64) {
    for (std::int64_t i = 0; i < count; ++i) y[i] = static_cast<float>(reinterpret_cast<const std::int64_t*>(from)[i]);
  } else {
    read_quantized(from, dtype, y, static_cast<std::size_t>(count));
  }
}

template <class T, bool sum>
void store_tile(const TileOperand* operands, const Rows& y, const TileRange& range) {
  const TileOperand a = operands[0], b = operands[sum ? 1 : 0];
  for (std::int64_t r = 0; r < range.rows; ++r) {
    const float *left = a.data + static_cast<std::size_t>(r) * a.row_step,
                *right = b.data + static_cast<std::size_t>(r) * b.row_step;
    T* const to = reinterpret_cast<T*>(y.row(range.row + r)) + range.column;
    for_vectors(static_cast<std::size_t>(range.columns), [&](std::size_t i, std::size_t n) HWY_ATTR {
      Floats v = load_n(left + i * a.column_step, n);
      if constexpr (sum) v = hn::Add(v, load_n(right + i * b.column_step, n));
      store_n(v, to + i, n);
    });
  }
}

/// Types of one byte.
template <DType dtype, bool sum>
void store_bytes(const TileOperand* operands, const Rows& y, const TileRange& range) {
  TileBuffer wide;
  const auto columns = static_cast<std::size_t>(range.columns);
  for (std::int64_t r = 0; r < range.rows; ++r) {
    TileOperand rows[] = {operands[0], operands[sum ? 1 : 0]};
    for (TileOperand& row : rows) row.data += static_cast<std::size_t>(r) * row.row_step;
    for_tile<2>(rows, {wide.data, 0, 1, columns},
                [](const Floats* v) HWY_ATTR { return sum ? hn::Add(v[0], v[1]) : v[0]; });
    std::byte* const to = y.row(range.row + r) + range.column;
    if constexpr (dtype == DType::boolean)
      for (std::size_t i = 0; i < columns; ++i) to[i] = static_cast<std::byte>(wide.data[i] != 0);
    else write_quantized(wide.data, dtype, to, columns);
  }
}

/// store(values, to, n) for every vector of the tiles of some operands and of a result of int8.
template <std::size_t count, class Store>
HWY_INLINE void for_quantized(const TileOperand* operands, const Rows& y, const TileRange& range, Store&& store) {
  for (std::int64_t r = 0; r < range.rows; ++r) {
    const float* from[count];
    for (std::size_t o = 0; o < count; ++o)
      from[o] = operands[o].data + static_cast<std::size_t>(r) * operands[o].row_step;
    auto* const to = reinterpret_cast<std::int8_t*>(y.row(range.row + r)) + range.column;
    for_vectors(static_cast<std::size_t>(range.columns), [&](std::size_t i, std::size_t n) HWY_ATTR {
      Floats v[count];
      for (std::size_t o = 0; o < count; ++o) v[o] = load_n(from[o] + i * operands[o].column_step, n);
      store(v, to + i, n);
    });
  }
}

/// See TileSteps::store_quantized.
template <bool sum>
void store_quantized(const TileOperand* operands, const Rows& y, const TileRange& range) {
  constexpr std::size_t values = sum ? 2 : 1;
  const TileOperand* const p = operands + values;
  if (is_number(p[0]) && is_number(p[1]) && SharedScale::takes(*p[0].data)) {
    const SharedScale quantized(*p[0].data, *p[1].data);
    const Floats zero_point = load(p[1].data);
    const hn::RebindToUnsigned<FloatTag> bits;
    return for_quantized<values>(operands, y, range, [&](const Floats* v, std::int8_t* to, std::size_t n) HWY_ATTR {
      const Floats x = value_of<sum>(v), code = hn::IfThenElseZero(hn::Eq(x, x), hn::Add(quantized(x), zero_point));
      const hn::Rebind<std::uint8_t, FloatTag> narrow;
      const auto bytes = hn::TruncateTo(narrow, hn::BitCast(bits, code));
      if (HWY_LIKELY(n == lanes())) return hn::StoreU(bytes, narrow, reinterpret_cast<std::uint8_t*>(to));
      HWY_ALIGN std::uint8_t buffer[hn::MaxLanes(FloatTag())];
      hn::StoreU(bytes, narrow, buffer);
      std::copy_n(buffer, n, reinterpret_cast<std::uint8_t*>(to));
    });
  }
  for_quantized<values + 2>(operands, y, range, [&](const Floats* v, std::int8_t* to, std::size_t n) HWY_ATTR {
    store_narrow(
        hn::ConvertTo(IntTag(), int8_values(hn::Add(hn::Round(hn::Div(value_of<sum>(v), v[values])), v[values + 1]))),
        to, n);
  });
}

template <bool sum>
TileStore store_of(DType dtype) {
  switch (dtype) {
    case DType::i32:  // the bits of integers
    case DType::f32: return store_tile<float, sum>;
    case DType::bf16: return store_tile<format::bf16, sum>;
    case DType::f16: return store_tile<format::f16, sum>;
    case DType::i8: return store_bytes<DType::i8, sum>;
    case DType::f8_e4m3: return store_bytes<DType::f8_e4m3, sum>;
    case DType::f8_e5m2: return store_bytes<DType::f8_e5m2, sum>;
    case DType::boolean: return store_bytes<DType::boolean, sum>;
    default: return nullptr;
  }
}

}  // namespace

TileSteps find_tile_steps() {
  return {.to_real = to_real,
          .scale_integers = scale_integers,
          .scale = scale,
          .subtract_product = subtract_product,
          .choose = choose,
          .scale_shifted_integers = scale_shifted_integers,
          .requantize = {{requantize<false, false>, requantize<false, true>},
                         {requantize<true, false>, requantize<true, true>}},
          .store_quantized = store_quantized<false>,
          .store_quantized_sum = store_quantized<true>};
}
TileStore find_tile_store(DType dtype, bool sum) { return sum ? store_of<true>(dtype) : store_of<false>(dtype); }

TileFunction find_tile_round(DType dtype) {
  switch (dtype) {
    case DType::bf16: return round_tile<format::bf16>;
    case DType::f16: return round_tile<format::f16>;
    case DType::i8: return round_quantized<DType::i8>;
    case DType::f8_e4m3: return round_quantized<DType::f8_e4m3>;
    case DType::f8_e5m2: return round_quantized<DType::f8_e5m2>;
    default: return nullptr;
  }
}

/// Of types that are not real.
RunConverter find_tile_reader(DType dtype) {
  switch (dtype) {
    case DType::i8: return read_run<DType::i8>;
    case DType::u8: return read_run<DType::u8>;
    case DType::boolean: return read_run<DType::boolean>;
    case DType::i64: return read_run<DType::i64>;
    case DType::f8_e4m3: return read_run<DType::f8_e4m3>;
    case DType::f8_e5m2: return read_run<DType::f8_e5m2>;
    default: assertion_failed("a type that tile programs read", __FILE_NAME__, __LINE__);
  }
}

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cermet::cpu {

HWY_EXPORT(find_tile_steps);
HWY_EXPORT(find_tile_store);
HWY_EXPORT(find_tile_round);
HWY_EXPORT(find_tile_reader);

TileSteps tile_steps() { return HWY_DYNAMIC_DISPATCH(find_tile_steps)(); }
TileStore tile_store(DType dtype, bool sum) { return HWY_DYNAMIC_DISPATCH(find_tile_store)(dtype, sum); }
TileFunction tile_round(DType dtype) { return HWY_DYNAMIC_DISPATCH(find_tile_round)(dtype); }
RunConverter tile_reader(DType dtype) {
  if (dtype == DType::i32) return real_converter(DType::f32, DType::f32);
  return dtypes::real.contains(dtype) ? real_converter(dtype, DType::f32)
                                      : HWY_DYNAMIC_DISPATCH(find_tile_reader)(dtype);
}

}  // namespace cermet::cpu
#endif
