// Products of a few rows with the keys and values of a tile, which are widened in registers: include after
// <hwy/foreach_target.h>.
#if defined(CERMET_FEW_PRODUCTS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CERMET_FEW_PRODUCTS_INL
#undef CERMET_FEW_PRODUCTS_INL
#else
#define CERMET_FEW_PRODUCTS_INL
#endif

#include <hwy/cache_control.h>

#include "kernel/cpu/attention/narrow_loads-inl.hpp"
#include "kernel/cpu/attention/tile_rows.hpp"
#include "kernel/cpu/vec-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {

/// Elements 0 .. 2 * lanes(), as two vectors: bf16 its even and its odd ones, which a shift and a mask widen.
template <class T>
HWY_INLINE void load_two(const T* p, Floats& a, Floats& b) {
  if constexpr (std::is_same_v<T, format::bf16>) {
    const hn::RebindToUnsigned<FloatTag> wide;
    const auto both = hn::LoadU(wide, reinterpret_cast<const std::uint32_t*>(p));
    a = hn::BitCast(FloatTag(), hn::ShiftLeft<16>(both));
    b = hn::BitCast(FloatTag(), hn::And(both, hn::Set(wide, 0xffff0000u)));
  } else {
    a = load(p), b = load(p + lanes());
  }
}

/// Place of element d of a row as load_two gives them.
template <class T>
std::int64_t place_of(std::int64_t d, std::int64_t length) {
  const auto step = static_cast<std::int64_t>(lanes()), whole = length / (2 * step) * (2 * step);
  if (!std::is_same_v<T, format::bf16> || d >= whole) return d;
  return d / (2 * step) * (2 * step) + d % 2 * step + d % (2 * step) / 2;
}

/// load_n of rows that are float32; whole vectors of others.
template <class T>
HWY_INLINE Floats load_rest(const T* p, std::size_t n) {
  if constexpr (std::is_same_v<T, float>) return load_n(p, n);
  else return load(p);
}

/// Sums of the lanes of four vectors.
HWY_INLINE void store_sums(const Floats (&x)[4], const float* factor, float* sums) {
#if HWY_TARGET == HWY_SCALAR
  for (int i = 0; i < 4; ++i) sums[i] = sum_lanes(x[i]) * factor[i];
#else
  const FloatTag d;
  const hn::FixedTag<float, 4> four;
  const auto add = [&](auto a, auto b)
                       HWY_ATTR { return hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b)); };
  auto all = add(add(x[0], x[2]), add(x[1], x[3]));  // of every block of four lanes
  const auto fold = [&]<class D>(D, auto v, const auto& self) HWY_ATTR {
    if constexpr (hn::MaxLanes(D()) == 4) return v;
    else {
      const hn::Half<D> half;
      return self(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)), self);
    }
  };
  const auto sum = fold(d, all, fold);
  hn::StoreU(hn::Mul(sum, hn::LoadU(four, factor)), four, sums);
#endif
}

HWY_INLINE void prefetch_row(const std::byte* row, std::int64_t bytes) {
  for (std::int64_t byte = 0; byte < bytes; byte += 64) __builtin_prefetch(row + byte, 0, 2);
}

/// scores[r][j] = factor j * query[r] . key j of `count` keys, while the rows `ahead` are prefetched.
template <class T, int R>
HWY_NOINLINE void score_few(const std::byte* queries, const TileRows& keys, std::int64_t count, std::int64_t length,
                            const TileRows* ahead, float* scores) {
  const auto* const query = reinterpret_cast<const float*>(queries);
  constexpr int K = hn::MaxLanes(FloatTag()) >= 16 ? 4 : 2;
  const auto step = static_cast<std::int64_t>(lanes());
  for (std::int64_t first = 0; first < count; first += 4) {
    if (ahead)
      for (int i = 0; i < 4; ++i) prefetch_row(ahead->row[first + i], length * static_cast<std::int64_t>(sizeof(T)));
    Floats dot[R][4];
    for (int part = 0; part < 4; part += K) {
      const T* row[K];
      for (int i = 0; i < K; ++i) row[i] = reinterpret_cast<const T*>(keys.row[first + part + i]);
      for (int r = 0; r < R; ++r)
        for (int i = 0; i < K; ++i) dot[r][part + i] = hn::Zero(FloatTag());
      std::int64_t d = 0;
      for (; d + 2 * step <= length; d += 2 * step) {
        Floats a[K], b[K];
        for (int i = 0; i < K; ++i) load_two(row[i] + d, a[i], b[i]);
        for (int r = 0; r < R; ++r) {
          const Floats x = load(query + r * length + d), y = load(query + r * length + d + step);
          for (int i = 0; i < K; ++i) dot[r][part + i] = hn::MulAdd(y, b[i], hn::MulAdd(x, a[i], dot[r][part + i]));
        }
      }
      for (; d < length; d += step) {
        const auto n = static_cast<std::size_t>(std::min(step, length - d));
        for (int r = 0; r < R; ++r) {
          const Floats x = load_n(query + r * length + d, n);
          for (int i = 0; i < K; ++i) dot[r][part + i] = hn::MulAdd(x, load_rest(row[i] + d, n), dot[r][part + i]);
        }
      }
    }
    for (int r = 0; r < R; ++r) store_sums(dot[r], keys.factor + first, scores + r * key_tile + first);
  }
}

/// output[r] += sum over keys of weights[r][key] * the elements of its value from d on, which fill V pairs of vectors.
template <class T, int R, int V>
HWY_INLINE void add_pairs(const float* weights, const TileRows& values, std::int64_t count, std::int64_t d,
                          std::int64_t length, const TileRows* ahead, float* output) {
  const auto step = static_cast<std::int64_t>(lanes());
  Floats sum[R][2 * V];
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < 2 * V; ++v) sum[r][v] = load(output + r * length + d + v * step);
  for (std::int64_t j = 0; j < count; ++j) {
    if (ahead)
      prefetch_row(ahead->row[j] + d * static_cast<std::int64_t>(sizeof(T)),
                   2 * V * step * static_cast<std::int64_t>(sizeof(T)));
    const T* row = reinterpret_cast<const T*>(values.row[j]) + d;
    Floats x[2 * V];
    for (int v = 0; v < V; ++v) load_two(row + 2 * v * step, x[2 * v], x[2 * v + 1]);
    for (int r = 0; r < R; ++r) {
      const Floats weight = hn::Set(FloatTag(), weights[r * key_tile + j]);
      for (int v = 0; v < 2 * V; ++v) sum[r][v] = hn::MulAdd(weight, x[v], sum[r][v]);
    }
  }
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < 2 * V; ++v) store(sum[r][v], output + r * length + d + v * step);
}

/// output[r][element] += sum over keys of weights[r][key] * value[key][element], elements in the order of load_two.
template <class T, int R>
HWY_NOINLINE void add_few(const float* weights, const TileRows& values, std::int64_t count, std::int64_t length,
                          const TileRows* ahead, float* output) {
  constexpr int V = hn::MaxLanes(FloatTag()) >= 16 ? 2 : 1;
  const auto step = static_cast<std::int64_t>(lanes());
  std::int64_t d = 0;
  for (; d + 2 * V * step <= length; d += 2 * V * step)
    add_pairs<T, R, V>(weights, values, count, d, length, ahead, output);
  if constexpr (V > 1)
    for (; d + 2 * step <= length; d += 2 * step) add_pairs<T, R, 1>(weights, values, count, d, length, ahead, output);
  for (; d < length; d += step) {
    const auto n = static_cast<std::size_t>(std::min(step, length - d));
    Floats sum[R];
    for (int r = 0; r < R; ++r) sum[r] = load_n(output + r * length + d, n);
    for (std::int64_t j = 0; j < count; ++j) {
      const Floats x = load_rest(reinterpret_cast<const T*>(values.row[j]) + d, n);
      for (int r = 0; r < R; ++r) sum[r] = hn::MulAdd(hn::Set(FloatTag(), weights[r * key_tile + j]), x, sum[r]);
    }
    for (int r = 0; r < R; ++r) store_n(sum[r], output + r * length + d, n);
  }
}

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
