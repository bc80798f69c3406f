#include "kernel/cpu/gemm/vnni.hpp"

#include "base/error.hpp"

#if defined(__x86_64__)
#include <immintrin.h>

#include <array>
#include <cstring>
#include <utility>

#include "kernel/cpu/gemm/panels.hpp"

#pragma GCC push_options
#pragma GCC target("avx512f,avx512vnni")

namespace cermet::cpu {
namespace {

template <int R>
void multiply_quantized(const std::uint8_t* rows, const std::int8_t* panel, std::int64_t quads, Ahead ahead,
                        const std::int32_t* column_sums, std::int32_t* tile) {
  __m512i left[R], right[R];  // columns 0..15 and 16..31 of each row
  const auto offset = [&](int column) {
    return _mm512_mullo_epi32(_mm512_loadu_si512(column_sums + column), _mm512_set1_epi32(-128));
  };
  const __m512i left_offset = offset(0), right_offset = offset(16);
#pragma GCC unroll 14
  for (int r = 0; r < R; ++r) left[r] = left_offset, right[r] = right_offset;
  for (std::int64_t q = 0; q < quads; ++q) {
    prefetch_unit<128>(panel, ahead);
    const __m512i low = _mm512_loadu_si512(panel), high = _mm512_loadu_si512(panel + 64);
#pragma GCC unroll 14
    for (int r = 0; r < R; ++r) {
      std::int32_t four;
      std::memcpy(&four, rows + 4 * r, sizeof four);
      const __m512i quantized = _mm512_set1_epi32(four);
      left[r] = _mm512_dpbusd_epi32(left[r], quantized, low);
      right[r] = _mm512_dpbusd_epi32(right[r], quantized, high);
    }
    rows += 4 * R;
    panel += 4 * panel_columns;
  }
#pragma GCC unroll 14
  for (int r = 0; r < R; ++r) {
    _mm512_storeu_si512(tile + r * panel_columns, left[r]);
    _mm512_storeu_si512(tile + r * panel_columns + 16, right[r]);
  }
}

template <std::size_t... R>
constexpr std::array<MultiplyQuantized, sizeof...(R)> table_of(std::index_sequence<R...>) {
  return {multiply_quantized<static_cast<int>(R) + 1>...};
}

}  // namespace

MultiplyQuantized multiply_quantized_vnni(std::int64_t rows) {
  static constexpr auto table = table_of(std::make_index_sequence<vnni_block_rows>());
  return table[static_cast<std::size_t>(rows - 1)];
}

}  // namespace cermet::cpu

#pragma GCC pop_options

#else

namespace cermet::cpu {

MultiplyQuantized multiply_quantized_vnni(std::int64_t) {
  assertion_failed("an x86 processor with AVX-512 VNNI", __FILE_NAME__, __LINE__);
}

}  // namespace cermet::cpu

#endif
