// A small float32 matrix product for operands in L1 and L2: c = a * b or c += a * b.
#if defined(CERMET_PRODUCT_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CERMET_PRODUCT_INL
#undef CERMET_PRODUCT_INL
#else
#define CERMET_PRODUCT_INL
#endif

#include <type_traits>

#include "kernel/cpu/vec-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {

/// The operand that is broadcast: element (m, k) is data[m * m_step + k * k_step].
struct Broadcast {
  const float* data;
  std::int64_t m_step, k_step;
};

struct ProductShape {
  std::int64_t m, n, k;  ///< n is a multiple of lanes()
};

/// Columns 0 .. V * lanes() of rows 0 .. R; the sums of k stay in registers.
template <int R, int V>
HWY_INLINE void product_block(const Broadcast& a, const float* b, float* c, const ProductShape& shape,
                              bool accumulate) {
  const std::int64_t step = static_cast<std::int64_t>(lanes());
  Floats sum[R][V];
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < V; ++v) sum[r][v] = accumulate ? load(c + r * shape.n + v * step) : hn::Zero(FloatTag());
  for (std::int64_t k = 0; k < shape.k; ++k) {
    Floats column[V];
    for (int v = 0; v < V; ++v) column[v] = load(b + k * shape.n + v * step);
    for (int r = 0; r < R; ++r) {
      const auto x = hn::Set(FloatTag(), a.data[r * a.m_step + k * a.k_step]);
      for (int v = 0; v < V; ++v) sum[r][v] = hn::MulAdd(x, column[v], sum[r][v]);
    }
  }
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < V; ++v) store(sum[r][v], c + r * shape.n + v * step);
}

template <int R>
HWY_INLINE void product_rows(const Broadcast& a, const float* b, float* c, const ProductShape& shape, bool accumulate) {
  const std::int64_t step = static_cast<std::int64_t>(lanes());
  std::int64_t n = 0;
  for (; n + 2 * step <= shape.n; n += 2 * step) product_block<R, 2>(a, b + n, c + n, shape, accumulate);
  if (n < shape.n) product_block<R, 1>(a, b + n, c + n, shape, accumulate);
}

/// c[m, n] (+)= a[m, k] * b[k, n]; b and c are dense. Sums over k run in order.
HWY_INLINE void product(const Broadcast& a, const float* b, float* c, const ProductShape& shape, bool accumulate) {
  constexpr int block =
      hn::MaxLanes(FloatTag()) >= 16 ? 8 : 4;  // as many sums as fit the registers of the instruction set
  std::int64_t m = 0;
  for (; m + block <= shape.m; m += block)
    product_rows<block>({a.data + m * a.m_step, a.m_step, a.k_step}, b, c + m * shape.n, shape, accumulate);
  const auto rest =
      [&]<int R>(std::integral_constant<int, R>) HWY_ATTR {  // a row by itself would wait for each of its sums
        if (m + R > shape.m) return;
        product_rows<R>({a.data + m * a.m_step, a.m_step, a.k_step}, b, c + m * shape.n, shape, accumulate);
        m += R;
      };
  if constexpr (block > 4) rest(std::integral_constant<int, 4>());
  rest(std::integral_constant<int, 2>());
  rest(std::integral_constant<int, 1>());
}

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
