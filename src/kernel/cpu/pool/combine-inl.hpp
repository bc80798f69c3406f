// Rows of elements combined to one of float32, and what is made of it: the vector part of pooling. Include after
// <hwy/foreach_target.h>.
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

/// What a window's elements become: State takes one after another.
struct PoolMax {
  static constexpr float identity = -std::numeric_limits<float>::infinity();
  struct State {
    Floats most;
    hn::Mask<FloatTag> unordered;
  };
  HWY_INLINE State start(Floats x) const { return {x, hn::IsNaN(x)}; }
  HWY_INLINE Floats lift(Floats x) const { return x; }
  /// NaN is kept beside the maximum, which it would make depend on the order, so that a chain has one instruction for
  /// each element.
  HWY_INLINE void add(State& state, Floats x) const {
    state.most = hn::Max(state.most, x);
    state.unordered = hn::Or(state.unordered, hn::IsNaN(x));
  }
  HWY_INLINE Floats result(const State& state) const {
    return hn::IfThenElse(state.unordered, hn::Set(FloatTag(), std::numeric_limits<float>::quiet_NaN()), state.most);
  }
  HWY_INLINE float reduce(Floats x) const {
    if (HWY_UNLIKELY(!hn::AllFalse(FloatTag(), hn::IsNaN(x)))) return std::numeric_limits<float>::quiet_NaN();
    return max_lanes(x);
  }
};
struct PoolSum {
  static constexpr float identity = 0;
  struct State {
    Floats sum;
  };
  HWY_INLINE State start(Floats x) const { return {x}; }
  HWY_INLINE Floats lift(Floats x) const { return x; }
  HWY_INLINE void add(State& state, Floats x) const { state.sum = hn::Add(state.sum, x); }
  HWY_INLINE Floats result(const State& state) const { return state.sum; }
  HWY_INLINE float reduce(Floats x) const { return sum_lanes(x); }
};
struct PoolPowers : PoolSum {
  int power;
  explicit PoolPowers(int p) : power(p) {}
  HWY_INLINE Floats lift(Floats x) const {
    if (power == 1) return hn::Abs(x);
    if (power == 2) return hn::Mul(x, x);
    return pow(Real(hn::Abs(x)), Real(power)).v;
  }
};

/// for_vectors, but the last whole vector overlaps the one before instead of being cut: for bodies that may run twice
/// on an element.
template <class Body>
HWY_INLINE void for_overlapping_vectors(std::size_t length, Body&& body) {
  const std::size_t step = lanes();
  std::size_t i = 0;
  for (; i + step <= length; i += step) body(i, step);
  if (i < length && length >= step) body(length - step, step);
  else if (i < length) body(i, length - i);
}

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
  const auto combine = [&](std::size_t i, std::size_t n) HWY_ATTR {
    auto state = op.start(fresh ? hn::Set(FloatTag(), Op::identity) : load_n(out + i, n));
    for (std::int64_t r = 0; r < count; ++r) op.add(state, op.lift(load_elements(rows[r] + i, n, 0)));
    store_n(op.result(state), out + i, n);
  };
  if (fresh) for_overlapping_vectors(static_cast<std::size_t>(length), combine);
  else for_vectors(static_cast<std::size_t>(length), combine);
}

/// What is left to do for a result: divided by `divisor`, and the root of a norm.
HWY_INLINE Floats finished(const Pooling& pooling, Floats total, Floats divisor) {
  if (pooling.kind == PoolKind::average) return hn::Div(total, divisor);
  if (pooling.kind != PoolKind::norm || pooling.power == 1) return total;
  if (pooling.power == 2) return hn::Sqrt(total);
  return pow(Real(total), Real(1.0 / pooling.power)).v;
}

/// Stores finished results; `divisor` is one for each element, or one for all where `shared`. Both rows have memory for
/// whole vectors.
template <class T>
void finish_row(const Pooling& pooling, const float* total, const float* divisor, float shared, T* to,
                std::int64_t length) {
  for_overlapping_vectors(static_cast<std::size_t>(length), [&](std::size_t i, std::size_t n) HWY_ATTR {
    const auto all = hn::Set(FloatTag(), shared);
    const auto y = finished(pooling, load(total + i), divisor ? hn::Mul(load(divisor + i), all) : all);
    if constexpr (sizeof(T) > 1) {
      store_n(y, to + i, n);
    } else {
      HWY_ALIGN float buffer[hn::MaxLanes(FloatTag())];
      hn::Store(y, FloatTag(), buffer);
      for (std::size_t k = 0; k < n; ++k)
        to[i + k] = static_cast<T>(HWY_MAX(buffer[k], static_cast<float>(std::numeric_limits<T>::lowest())));
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
