// Blocks of windows times panels. A result is one chain of fused multiply-adds over the taps and their channels, whatever the block. In a file of its own
// because its unrolled blocks take longer to compile than all that is around them.
#include "kernel/cpu/conv/taps.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/conv/taps.cpp"
#include <hwy/foreach_target.h>

#include <array>
#include <utility>

#include "kernel/cpu/gemm/block_rows-inl.hpp"
#include "kernel/cpu/gemm/panels.hpp"
#include "kernel/cpu/vec-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {
namespace {

constexpr int lane_count = static_cast<int>(hn::MaxLanes(FloatTag()));

/// sum += x * weights, without a copy of x: see gemm/float.cpp.
HWY_INLINE void accumulate(Floats& sum, Floats x, Floats weights) {
#if HWY_TARGET <= HWY_AVX2 && HWY_ARCH_X86
  asm("vfmadd231ps %2, %1, %0" : "+v"(sum.raw) : "v"(x.raw), "v"(weights.raw));
#else
  sum = hn::MulAdd(x, weights, sum);
#endif
}

/// Addresses of R rows by few registers: every fourth row has a pointer, the ones between are multiples of the step away.
template <int R>
struct RowPointers {
  static constexpr int groups = (R + 3) / 4;
  const float* at[groups];
  std::int64_t step;

  HWY_INLINE RowPointers(const float* first, std::int64_t row_step) : step(row_step) {
    for (int g = 0; g < groups; ++g) at[g] = first + 4 * g * row_step;
  }
  HWY_INLINE float row(int r) const { return at[r / 4][r % 4 * step]; }
  HWY_INLINE void next() {
    for (int g = 0; g < groups; ++g) ++at[g];
  }
};

template <int R, int V>
HWY_INLINE void store_sums(Floats (&sums)[R][V], const TapStore& s) {
  const auto low = hn::Set(FloatTag(), s.low), high = hn::Set(FloatTag(), s.high);
#pragma GCC unroll 8
  for (int v = 0; v < V; ++v) {
    const Floats bias = s.bias ? load(s.bias + v * lane_count) : hn::Zero(FloatTag());
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      Floats sum = sums[r][v];
      if (s.bias) sum = hn::Add(sum, bias);
      if (s.residual) sum = hn::Add(sum, load(s.residual + r * s.residual_step + v * lane_count));
      // Bounds come first: a NaN stays.
      store(hn::Min(high, hn::Max(low, sum)), s.y + r * s.y_step + v * lane_count);
    }
  }
}

/// The product for V vectors of columns.
template <int R, int V>
HWY_INLINE void multiply_columns(const TapRows& rows, const float* panel, float* tile, const TapStore* store_to) {
  Floats sums[R][V];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) sums[r][v] = load(tile + r * panel_columns + v * lane_count);
  for (const TapRun* run = rows.runs; run < rows.runs + rows.run_count; ++run) {
    RowPointers<R> x(rows.first + run->offset, rows.step);
    for (std::int64_t k = run->length; k > 0; --k) {
      Floats weights[V];
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) weights[v] = load(panel + v * lane_count);
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) {
        const Floats value = hn::Set(FloatTag(), x.row(r));
#pragma GCC unroll 8
        for (int v = 0; v < V; ++v) accumulate(sums[r][v], value, weights[v]);
      }
      x.next();
      panel += panel_columns;
    }
  }
  if (store_to) return store_sums<R, V>(sums, *store_to);
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) store(sums[r][v], tile + r * panel_columns + v * lane_count);
}

template <int R>
void multiply_panel(const TapRows& rows, const float* panel, float* tile, const TapStore* store_to) {
  constexpr int vectors = static_cast<int>(panel_columns) / lane_count, V = R * vectors <= 2 * block_rows ? vectors : 2;
  for (int v = 0; v < vectors; v += V) {
    const int column = v * lane_count;
    if (!store_to) {
      multiply_columns<R, V>(rows, panel + column, tile + column, nullptr);
      continue;
    }
    TapStore part = *store_to;
    part.y += column;
    if (part.bias) part.bias += column;
    if (part.residual) part.residual += column;
    multiply_columns<R, V>(rows, panel + column, tile + column, &part);
  }
}

template <std::size_t... R>
constexpr std::array<MultiplyTaps, sizeof...(R)> table_of(std::index_sequence<R...>) {
  return {multiply_panel<static_cast<int>(R) + 1>...};
}

}  // namespace

TapProducts products() {
  static constexpr auto table = table_of(std::make_index_sequence<block_rows>());
  static_assert(block_rows <= most_tap_rows);
  return {table.data(), block_rows};
}

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cermet::cpu {

HWY_EXPORT(products);

TapProducts tap_products() { return HWY_DYNAMIC_DISPATCH(products)(); }

}  // namespace cermet::cpu
#endif
