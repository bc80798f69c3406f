#include <algorithm>
#include <cmath>
#include <limits>

#include "format/element.hpp"
#include "kernel/cpu/by_size.hpp"
#include "kernel/cpu/convert.hpp"
#include "kernel/cpu/pointwise/tile_region.hpp"
#include "kernel/kernel.hpp"
#include "op/cast.hpp"

namespace cermet::cpu {
namespace {

using format::bf16;
using format::e4m3;
using format::e4m3fnuz;
using format::e5m2;
using format::e5m2fnuz;
using format::e8m0;
using format::f16;
using format::Rounding;

/// A boolean in memory: any byte but 0 is true.
struct Boolean {
  std::uint8_t byte;
};

/// Wide carries a value between the two types without loss: double for all but 64-bit integers, which take long double.
template <class Wide, class From>
Wide widened(From x) {
  if constexpr (std::is_same_v<From, Boolean>) return x.byte != 0 ? 1 : 0;
  else if constexpr (std::is_arithmetic_v<From>) return static_cast<Wide>(x);
  else return static_cast<Wide>(format::to_float(x));
}

template <class T, class Wide>
T clamped(Wide whole) {
  constexpr auto low = static_cast<Wide>(std::numeric_limits<T>::min()),
                 high = static_cast<Wide>(std::numeric_limits<T>::max());
  if (std::isnan(whole)) return T{0};
  return whole <= low    ? std::numeric_limits<T>::min()
         : whole >= high ? std::numeric_limits<T>::max()
                         : static_cast<T>(whole);
}

template <class To, class Wide>
To narrowed(Wide value, Rounding rounding) {
  if constexpr (std::is_same_v<To, Boolean>) return {static_cast<std::uint8_t>(value != 0)};
  else if constexpr (std::is_integral_v<To>)
    return clamped<To>(rounding == Rounding::zero ? std::trunc(value) : std::nearbyint(value));
  else if constexpr (std::is_arithmetic_v<To>) return static_cast<To>(value);
  else if constexpr (std::is_same_v<To, bf16>) return format::to_bf16(format::round_to_odd(value));
  else if constexpr (std::is_same_v<To, f16>) return format::to_f16(format::round_to_odd(value));
  else if constexpr (std::is_same_v<To, e4m3>) return format::to_e4m3(format::round_to_odd(value));
  else if constexpr (std::is_same_v<To, e5m2>) return format::to_e5m2(format::round_to_odd(value));
  else if constexpr (std::is_same_v<To, e4m3fnuz>) return format::to_e4m3fnuz(format::round_to_odd(value));
  else if constexpr (std::is_same_v<To, e5m2fnuz>) return format::to_e5m2fnuz(format::round_to_odd(value));
  else return format::to_e8m0(format::round_to_odd(value), rounding);
}

/// Calls body(T{}) with the C++ type of any dtype.
template <class Body>
void by_dtype(DType dtype, Body&& body) {
  switch (dtype) {
    case DType::boolean: return body(Boolean{});
    case DType::u8: return body(std::uint8_t{});
    case DType::i8: return body(std::int8_t{});
    case DType::f8_e4m3: return body(e4m3{});
    case DType::f8_e5m2: return body(e5m2{});
    case DType::f8_e4m3fnuz: return body(e4m3fnuz{});
    case DType::f8_e5m2fnuz: return body(e5m2fnuz{});
    case DType::f8_e8m0: return body(e8m0{});
    case DType::u16: return body(std::uint16_t{});
    case DType::i16: return body(std::int16_t{});
    case DType::f16: return body(f16{});
    case DType::bf16: return body(bf16{});
    case DType::u32: return body(std::uint32_t{});
    case DType::i32: return body(std::int32_t{});
    case DType::f32: return body(float{});
    case DType::u64: return body(std::uint64_t{});
    case DType::i64: return body(std::int64_t{});
    case DType::f64: return body(double{});
  }
}

/// The same of integers.
template <class Body>
void by_integer(DType dtype, Body&& body) {
  switch (dtype) {
    case DType::u8: return body(std::uint8_t{});
    case DType::i8: return body(std::int8_t{});
    case DType::u16: return body(std::uint16_t{});
    case DType::i16: return body(std::int16_t{});
    case DType::u32: return body(std::uint32_t{});
    case DType::i32: return body(std::int32_t{});
    case DType::u64: return body(std::uint64_t{});
    default: return body(std::int64_t{});
  }
}

struct Cast {
  DType from, to;
  Rounding rounding;
};

/// Through a block of wide values, so that there is one loop per type and not one per pair of types.
template <class Wide>
void cast_run(const Cast& cast, const std::byte* from, std::byte* to, std::int64_t count) {
  constexpr std::int64_t block = 256;
  Wide wide[block];
  for (std::int64_t begin = 0; begin < count; begin += block) {
    const std::int64_t n = std::min(block, count - begin);
    by_dtype(cast.from, [&](auto zero) {
      const auto* x = reinterpret_cast<const decltype(zero)*>(from) + begin;
      for (std::int64_t i = 0; i < n; ++i) wide[i] = widened<Wide>(x[i]);
    });
    by_dtype(cast.to, [&](auto zero) {
      auto* y = reinterpret_cast<decltype(zero)*>(to) + begin;
      for (std::int64_t i = 0; i < n; ++i) y[i] = narrowed<decltype(zero)>(wide[i], cast.rounding);
    });
  }
}

/// The low bits of integers, by what has as many.
void low_bits_run(const Cast& cast, const std::byte* from, std::byte* to, std::int64_t count) {
  constexpr std::int64_t block = 256;
  std::uint64_t wide[block];
  for (std::int64_t begin = 0; begin < count; begin += block) {
    const std::int64_t n = std::min(block, count - begin);
    by_integer(cast.from, [&](auto zero) {
      const auto* x = reinterpret_cast<const decltype(zero)*>(from) + begin;
      for (std::int64_t i = 0; i < n; ++i) wide[i] = static_cast<std::uint64_t>(x[i]);  // with the sign's bits
    });
    by_integer(cast.to, [&](auto zero) {
      auto* y = reinterpret_cast<decltype(zero)*>(to) + begin;
      for (std::int64_t i = 0; i < n; ++i) y[i] = static_cast<decltype(zero)>(wide[i]);
    });
  }
}

bool is_wide_integer(DType dtype) { return dtype == DType::i64 || dtype == DType::u64; }

void convert_run(const Cast& cast, const std::byte* from, std::byte* to, std::int64_t count) {
  if (cast.from == cast.to) {
    std::copy_n(from, count * byte_size(cast.from), to);
  } else if (dtypes::real.contains(cast.from) && dtypes::real.contains(cast.to)) {
    real_converter(cast.from, cast.to)(from, to, count);
  } else if (is_integer(cast.from) && is_integer(cast.to)) {
    low_bits_run(cast, from, to, count);
  } else if (is_wide_integer(cast.from) || is_wide_integer(cast.to)) {
    cast_run<long double>(cast, from, to, count);
  } else {
    cast_run<double>(cast, from, to, count);
  }
}

void cast_cells(const LaunchArgs& args, Rounding rounding) {
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  const Cast cast{x.dtype, y.dtype, rounding};
  const int trailing = x.is_dense() && y.is_dense() ? x.shape.rank() : 1;
  const Rows from(x, trailing), to(y, trailing);
  const std::int64_t piece = std::min<std::int64_t>(from.length(), 1 << 14),
                     pieces = piece > 0 ? (from.length() + piece - 1) / piece : 0;
  const auto from_bytes = byte_size(x.dtype), to_bytes = byte_size(y.dtype);
  args.pool->parallel_for(from.count() * pieces, rows_per_thread(piece * (from_bytes + to_bytes)),
                          [&](std::int64_t begin, std::int64_t end) {
                            for (std::int64_t unit = begin; unit < end; ++unit) {
                              const std::int64_t r = unit / pieces, first = unit % pieces * piece;
                              convert_run(cast, from.row(r) + first * from_bytes, to.row(r) + first * to_bytes,
                                          std::min(piece, from.length() - first));
                            }
                          });
}

}  // namespace

extern const Kernel movement_cast = with_regions({
    .name = "movement.cast",
    .op = OpKind::cast,
    .summary = "vectors between the real types, other pairs through blocks of double; runs spread over threads",
    .bind = [](const Problem& p) -> Launcher {
      return [rounding = cast_rounding(p.attributes)](const LaunchArgs& args) { cast_cells(args, rounding); };
    },
});

}  // namespace cermet::cpu
