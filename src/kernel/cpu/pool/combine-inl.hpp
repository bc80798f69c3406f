// Rows of elements combined to one of float32, and what is made of it: the vector part of pooling. Include after <hwy/foreach_target.h>.
#if defined(CERMET_POOL_COMBINE_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CERMET_POOL_COMBINE_INL
#undef CERMET_POOL_COMBINE_INL
#else
#define CERMET_POOL_COMBINE_INL
#endif

#include <limits>

#include "kernel/cpu/math-inl.hpp"
#include "kernel/cpu/pool/pool.hpp"

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {

/// Rows that are combined at a time.
inline constexpr std::int64_t row_list = 32;

struct PoolMax {
  static constexpr float identity = -std::numeric_limits<float>::infinity();
  HWY_INLINE Floats lift(Floats x) const { return x; }
  /// NaN where either is.
  HWY_INLINE Floats combine(Floats a, Floats b) const { return hn::IfThenElse(hn::Or(hn::Gt(b, a), hn::IsNaN(b)), b, a); }
};
struct PoolSum {
  static constexpr float identity = 0;
  HWY_INLINE Floats lift(Floats x) const { return x; }
  HWY_INLINE Floats combine(Floats a, Floats b) const { return hn::Add(a, b); }
};
struct PoolPowers {
  static constexpr float identity = 0;
  int power;
  HWY_INLINE Floats lift(Floats x) const {
    if (power == 1) return hn::Abs(x);
    if (power == 2) return hn::Mul(x, x);
    return pow(Real(hn::Abs(x)), Real(power)).v;
  }
  HWY_INLINE Floats combine(Floats a, Floats b) const { return hn::Add(a, b); }
};

template <class T>
HWY_INLINE Floats load_elements(const T* p, std::size_t count, float fill) {
  if constexpr (sizeof(T) > 1) {
    return load_n(p, count, fill);
  } else {
    const hn::Rebind<std::int32_t, FloatTag> wide;
    const hn::Rebind<T, FloatTag> narrow;
    if (HWY_LIKELY(count == lanes())) return hn::ConvertTo(FloatTag(), hn::PromoteTo(wide, hn::LoadU(narrow, p)));
    HWY_ALIGN float buffer[hn::MaxLanes(FloatTag())];
    for (std::size_t i = 0; i < lanes(); ++i) buffer[i] = i < count ? static_cast<float>(p[i]) : fill;
    return hn::Load(FloatTag(), buffer);
  }
}

/// out[i] = out[i] combined with rows[..][i], 0 <= i < length; `fresh`: with the rows alone.
template <class Op, class T>
void combine_rows(const Op& op, const T* const* rows, std::int64_t count, std::int64_t length, bool fresh, float* out) {
  for_vectors(static_cast<std::size_t>(length), [&](std::size_t i, std::size_t n) HWY_ATTR {
    auto total = fresh ? hn::Set(FloatTag(), Op::identity) : load_n(out + i, n);
    for (std::int64_t r = 0; r < count; ++r) total = op.combine(total, op.lift(load_elements(rows[r] + i, n, 0)));
    store_n(total, out + i, n);
  });
}

/// What is left to do for a result: divided by `divisor`, and the root of a norm.
HWY_INLINE Floats finished(const Pooling& pooling, Floats total, Floats divisor) {
  if (pooling.kind == PoolKind::average) return hn::Div(total, divisor);
  if (pooling.kind != PoolKind::norm || pooling.power == 1) return total;
  if (pooling.power == 2) return hn::Sqrt(total);
  return pow(Real(total), Real(1.0 / pooling.power)).v;
}

/// Stores finished results; `divisor` is one for each element, or one for all where `shared`.
template <class T>
void finish_row(const Pooling& pooling, const float* total, const float* divisor, float shared, T* to, std::int64_t length) {
  for_vectors(static_cast<std::size_t>(length), [&](std::size_t i, std::size_t n) HWY_ATTR {
    const auto all = hn::Set(FloatTag(), shared);
    const auto y = finished(pooling, load_n(total + i, n), divisor ? hn::Mul(load_n(divisor + i, n), all) : all);
    if constexpr (sizeof(T) > 1) {
      store_n(y, to + i, n);
    } else {
      HWY_ALIGN float buffer[hn::MaxLanes(FloatTag())];
      hn::Store(y, FloatTag(), buffer);
      for (std::size_t k = 0; k < n; ++k) to[i + k] = static_cast<T>(HWY_MAX(buffer[k], static_cast<float>(std::numeric_limits<T>::lowest())));
    }
  });
}

/// A divisor that an empty window cannot make infinite.
HWY_INLINE float divisor_of(std::int64_t count) { return count > 0 ? static_cast<float>(count) : 1.0f; }

/// Rows of a list that is combined whenever it is full.
template <class Op, class T>
struct RowList {
  const Op& op;
  std::int64_t length;
  float* total;
  const T* rows[row_list];
  std::int64_t count = 0;
  bool fresh = true;

  HWY_INLINE void add(const T* row) {
    rows[count++] = row;
    if (count == row_list) flush();
  }
  HWY_INLINE void flush() {
    combine_rows(op, rows, count, length, fresh, total);
    fresh = false;
    count = 0;
  }
};

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
