// Blocks of windows times panels. A result is one chain of fused multiply-adds over the taps and their channels,
// whatever the block. In a file of its own because its unrolled blocks take longer to compile than all that is around
// them.
#include "kernel/cpu/conv/taps.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/conv/taps.cpp"
#include <hwy/foreach_target.h>

#include <algorithm>
#include <array>
#include <utility>

#include "kernel/cpu/gemm/accumulate-inl.hpp"
#include "kernel/cpu/gemm/block_rows-inl.hpp"
#include "kernel/cpu/gemm/panels.hpp"
#include "kernel/cpu/vec-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {
namespace {

constexpr int lane_count = static_cast<int>(hn::MaxLanes(FloatTag()));

/// Addresses of R rows by few registers: every fourth row has a pointer, the ones between are multiples of the step
/// away.
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

/// The first `count` elements; no others are read or written.
HWY_INLINE Floats load_first(const float* p, std::size_t count) {
  if constexpr (HWY_MEM_OPS_MIGHT_FAULT != 0) return load_n(p, count);
  return hn::MaskedLoad(hn::FirstN(FloatTag(), count), FloatTag(), p);
}
HWY_INLINE void store_first(Floats v, float* p, std::size_t count) {
  if constexpr (HWY_MEM_OPS_MIGHT_FAULT != 0) return store_n(v, p, count);
  hn::BlendedStore(v, hn::FirstN(FloatTag(), count), FloatTag(), p);
}

/// A member that the compiler must not load together with its neighbour.
HWY_INLINE std::int64_t read_alone(const std::int64_t& member) {
  std::int64_t value = member;
  asm("" : "+r"(value));
  return value;
}

/// Stores the first `columns` columns of sums that are in a tile already: registers would have to have addresses.
HWY_NOINLINE void store_some(const float* tile, int rows, const TapStore& s, std::int64_t first, std::int64_t columns) {
  float* const y = s.y + first;
  const float *const biases = s.bias ? s.bias + first : nullptr, *const residual =
                                                                     s.residual ? s.residual + first : nullptr;
  const auto low = hn::Set(FloatTag(), s.low), high = hn::Set(FloatTag(), s.high);
  for (std::int64_t c = 0; c < columns; c += lane_count) {
    const auto count = static_cast<std::size_t>(std::min<std::int64_t>(lane_count, columns - c));
    const Floats bias = biases ? load_first(biases + c, count) : hn::Zero(FloatTag());
    for (int r = 0; r < rows; ++r) {
      Floats sum = load(tile + r * panel_columns + c);
      if (biases) sum = hn::Add(sum, bias);
      if (residual) sum = hn::Add(sum, load_first(residual + r * s.residual_step + c, count));
      store_first(clamp(sum, low, high), y + r * s.y_step + c, count);
    }
  }
}

/// The same of whole rows, which are written one after the other.
HWY_NOINLINE void store_rows(const float* tile, int rows, const TapStore& s) {
  constexpr int vectors = static_cast<int>(panel_columns) / lane_count;
  const auto low = hn::Set(FloatTag(), s.low), high = hn::Set(FloatTag(), s.high);
  const bool biased = s.bias != nullptr;
  Floats bias[vectors];
#pragma GCC unroll 8
  for (int v = 0; v < vectors; ++v) bias[v] = biased ? load(s.bias + v * lane_count) : hn::Zero(FloatTag());
  float* y = s.y;
  const float* residual = s.residual;
  const std::int64_t y_step = s.y_step, residual_step = s.residual_step;
  for (int r = 0; r < rows; ++r, y += y_step, tile += panel_columns) {
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) {
      Floats sum = load(tile + v * lane_count);
      if (biased) sum = hn::Add(sum, bias[v]);
      if (residual) sum = hn::Add(sum, load(residual + v * lane_count));
      store(clamp(sum, low, high), y + v * lane_count);
    }
    if (residual) residual += residual_step;
  }
}

void store_tile(const float* tile, int rows, const TapStore& s, std::int64_t columns) {
  if (columns == panel_columns) store_rows(tile, rows, s);
  else store_some(tile, rows, s, 0, columns);
}

/// From column `column` of a store on.
template <int R, int V>
HWY_INLINE void store_sums(Floats (&sums)[R][V], const TapStore& s, std::int64_t column) {
  float* const y = s.y + column;
  const float* const residual = s.residual ? s.residual + column : nullptr;
  const auto low = hn::Set(FloatTag(), s.low), high = hn::Set(FloatTag(), s.high);
#pragma GCC unroll 8
  for (int v = 0; v < V; ++v) {
    const Floats bias = s.bias ? load(s.bias + column + v * lane_count) : hn::Zero(FloatTag());
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      Floats sum = sums[r][v];
      if (s.bias) sum = hn::Add(sum, bias);
      if (residual) sum = hn::Add(sum, load(residual + r * s.residual_step + v * lane_count));
      store(clamp(sum, low, high), y + r * s.y_step + v * lane_count);
    }
  }
}

/// The product for V vectors of columns from `column` on. What callers have just written is read a member at a time: a
/// copy of a struct takes several at once, and such a load waits until all stores before it, the results of the last
/// block among them, have left the processor.
template <int R, int V>
HWY_INLINE void multiply_columns(const TapRows& rows, const float* panel, float* tile, const TapStore* store_to,
                                 std::int64_t column) {
  const std::int64_t columns = rows.columns - column;
  panel += column, tile += column;
  Floats sums[R][V];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v)
      sums[r][v] = rows.begins ? hn::Zero(FloatTag()) : load(tile + r * panel_columns + v * lane_count);
  Ahead ahead{rows.ahead.at, read_alone(rows.ahead.step)};
  for (const TapRun* run = rows.runs; run < rows.runs + rows.run_count; ++run) {
    RowPointers<R> x(rows.first + run->offset, rows.step);
    for (std::int64_t k = run->length; k > 0; --k) {
      prefetch_unit<panel_columns* static_cast<int>(sizeof(float))>(panel, ahead);
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
  if (store_to && columns >= V * lane_count) return store_sums<R, V>(sums, *store_to, column);
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) store(sums[r][v], tile + r * panel_columns + v * lane_count);
  if (store_to) store_some(tile, R, *store_to, column, columns);
}

template <int R>
void multiply_panel(const TapRows& rows, const float* panel, float* tile, const TapStore* store_to) {
  constexpr int vectors = static_cast<int>(panel_columns) / lane_count, V = R * vectors <= 2 * block_rows ? vectors : 2;
  if (rows.columns <= lane_count) return multiply_columns<R, 1>(rows, panel, tile, store_to, 0);
  for (int v = 0; v < vectors && v * lane_count < rows.columns; v += V)
    multiply_columns<R, V>(rows, panel, tile, store_to, v * lane_count);
}

template <std::size_t... R>
constexpr std::array<MultiplyTaps, sizeof...(R)> table_of(std::index_sequence<R...>) {
  return {multiply_panel<static_cast<int>(R) + 1>...};
}

}  // namespace

TapProducts products() {
  static constexpr auto table = table_of(std::make_index_sequence<block_rows>());
  static_assert(block_rows <= most_tap_rows);
  return {table.data(), block_rows, store_tile};
}

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cermet::cpu {

HWY_EXPORT(products);

TapProducts tap_products() { return HWY_DYNAMIC_DISPATCH(products)(); }

}  // namespace cermet::cpu
#endif
