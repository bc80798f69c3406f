// Products of float32 rows with packed panels (panels.hpp). A result is one chain of fused multiply-adds over k in
// rising order, for bf16 panels with the second step of each pair before the first, as bf16 dot products sum
// (bf16.hpp). So it does not depend on the number of rows, threads or lanes, nor on how k is sliced. In a file of its
// own because its unrolled blocks take longer to compile than all that is around them.
#include "kernel/cpu/gemm/float.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/gemm/float.cpp"
#include <hwy/foreach_target.h>

#include <array>
#include <utility>

#include "base/error.hpp"
#include "kernel/cpu/gemm/accumulate-inl.hpp"
#include "kernel/cpu/gemm/block_rows-inl.hpp"
#include "kernel/cpu/gemm/panels.hpp"
#include "kernel/cpu/vec-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {
namespace {

/// Vectors of sums that registers hold, two for each row, beside the weights.
constexpr int accumulators = 2 * block_rows;

/// Weights of reduction step `part` of a unit, widened to float32; `unit` points at the first of lanes() columns.
template <int part>
HWY_INLINE Floats panel_weights(const float* unit) {
  return load(unit);
}
template <int part>
HWY_INLINE Floats panel_weights(const format::f16* unit) {
  return load(unit);
}
template <int part>
HWY_INLINE Floats panel_weights(const format::bf16* unit) {
  const hn::RebindToUnsigned<FloatTag> wide;
  const auto pairs = hn::LoadU(wide, reinterpret_cast<const std::uint32_t*>(unit));
  if constexpr (part == 0) return hn::BitCast(FloatTag(), hn::ShiftLeft<16>(pairs));
  return hn::BitCast(FloatTag(), hn::And(pairs, hn::Set(wide, 0xffff0000u)));
}

template <int part>
HWY_INLINE Floats panel_weights(const std::int8_t* unit) {
  const hn::RebindToSigned<FloatTag> wide;
  const auto quads = hn::LoadU(wide, reinterpret_cast<const std::int32_t*>(unit));
  return hn::ConvertTo(FloatTag(), hn::ShiftRight<24>(hn::ShiftLeft<24 - 8 * part>(quads)));
}

/// Reduction steps that lie next to each other in a panel of this element type.
template <class W>
inline constexpr int unit_of = std::is_same_v<W, format::bf16>  ? 2
                               : std::is_same_v<W, std::int8_t> ? 4
                                                                : 1;

/// One reduction step: accumulators[r][v] += rows[r] * weights.
template <int R, int V, int part, class W>
HWY_INLINE void multiply_step(const float* rows, const W* unit, Floats (&sums)[R][V]) {
  Floats weights[V];
#pragma GCC unroll 8
  for (int v = 0; v < V; ++v)
    weights[v] = panel_weights<part>(unit + v * static_cast<int>(hn::MaxLanes(FloatTag())) * unit_of<W>);
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
    const Floats x = hn::Set(FloatTag(), rows[r]);
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) accumulate(sums[r][v], x, weights[v]);
  }
}

/// tile[r][c] += sum over k of rows[k][r] * panel[k][c] for V vectors of columns. rows: [units * unit][R]; panel:
/// [units][32][unit]; tile: [R][32].
template <int R, int V, class W>
HWY_INLINE void multiply_columns(const float* rows, const W* panel, std::int64_t units, Ahead ahead, float* tile) {
  constexpr int step = static_cast<int>(panel_columns) * unit_of<W>;
  Floats sums[R][V];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v)
      sums[r][v] = load(tile + r * panel_columns + v * static_cast<int>(hn::MaxLanes(FloatTag())));
  for (std::int64_t u = 0; u < units; ++u) {
    prefetch_unit<step* static_cast<int>(sizeof(W))>(panel, ahead);
    if constexpr (unit_of<W> == 2) multiply_step<R, V, 1>(rows + R, panel, sums);
    multiply_step<R, V, 0>(rows, panel, sums);
    if constexpr (unit_of<W> == 4) {
      multiply_step<R, V, 1>(rows + R, panel, sums);
      multiply_step<R, V, 2>(rows + 2 * R, panel, sums);
      multiply_step<R, V, 3>(rows + 3 * R, panel, sums);
    }
    rows += R * unit_of<W>;
    panel += step;
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v)
      hn::StoreU(sums[r][v], FloatTag(), tile + r * panel_columns + v * static_cast<int>(hn::MaxLanes(FloatTag())));
}

/// All 32 columns of a panel for a block of R rows of float32.
template <int R, class W>
void multiply_panel(const void* rows, const void* panel, std::int64_t units, Ahead ahead, float* tile) {
  constexpr int lane_count = static_cast<int>(hn::MaxLanes(FloatTag())),
                vectors = static_cast<int>(panel_columns) / lane_count;
  constexpr int V = R * vectors <= accumulators ? vectors : 2;
  for (int v = 0; v < vectors; v += V)
    multiply_columns<R, V>(static_cast<const float*>(rows), static_cast<const W*>(panel) + v * lane_count * unit_of<W>,
                           units, ahead, tile + v * lane_count);
}

template <class W, std::size_t... R>
constexpr std::array<MultiplyPanel, sizeof...(R)> multiply_panel_table(std::index_sequence<R...>) {
  return {multiply_panel<static_cast<int>(R) + 1, W>...};
}

template <class W>
const MultiplyPanel* table_of() {
  static constexpr auto table = multiply_panel_table<W>(std::make_index_sequence<block_rows>());
  return table.data();
}

}  // namespace

const MultiplyPanel* float_products_of(DType panel_type) {
  switch (panel_type) {
    case DType::f32: return table_of<float>();
    case DType::bf16: return table_of<format::bf16>();
    case DType::f16: return table_of<format::f16>();
    case DType::i8: return table_of<std::int8_t>();
    default: assertion_failed("a type that panels are packed in", __FILE_NAME__, __LINE__);
  }
}

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cermet::cpu {

HWY_EXPORT(float_products_of);

const MultiplyPanel* float_products(DType panel_type) { return HWY_DYNAMIC_DISPATCH(float_products_of)(panel_type); }

}  // namespace cermet::cpu
#endif
