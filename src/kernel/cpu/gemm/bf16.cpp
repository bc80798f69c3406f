#include "kernel/cpu/gemm/bf16.hpp"

#include "base/env.hpp"
#include "base/error.hpp"
#include "kernel/cpu/isa.hpp"
#include "kernel/cpu/limits.hpp"

#if defined(__x86_64__)
#include <immintrin.h>

#include <array>
#include <cstring>
#include <utility>

#include "kernel/cpu/gemm/panels.hpp"

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bf16")

namespace cermet::cpu {
namespace {

template <int R>
void multiply_block(const void* packed_rows, const void* packed_panel, std::int64_t pairs, Ahead ahead, float* tile) {
  const auto* rows = static_cast<const char*>(packed_rows);
  const auto* panel = static_cast<const char*>(packed_panel);
  __m512 left[R], right[R];  // columns 0..15 and 16..31 of each row
#pragma GCC unroll 14
  for (int r = 0; r < R; ++r) {
    left[r] = _mm512_loadu_ps(tile + r * panel_columns);
    right[r] = _mm512_loadu_ps(tile + r * panel_columns + 16);
  }
  for (std::int64_t p = 0; p < pairs; ++p) {
    prefetch_unit<128>(panel, ahead);
    const auto low = reinterpret_cast<__m512bh>(_mm512_loadu_si512(panel)),
               high = reinterpret_cast<__m512bh>(_mm512_loadu_si512(panel + 64));
#pragma GCC unroll 14
    for (int r = 0; r < R; ++r) {
      std::int32_t pair;
      std::memcpy(&pair, rows + 4 * r, sizeof pair);
      const auto x = reinterpret_cast<__m512bh>(_mm512_set1_epi32(pair));
      left[r] = _mm512_dpbf16_ps(left[r], x, low);
      right[r] = _mm512_dpbf16_ps(right[r], x, high);
    }
    rows += 4 * R;
    panel += 128;
  }
#pragma GCC unroll 14
  for (int r = 0; r < R; ++r) {
    _mm512_storeu_ps(tile + r * panel_columns, left[r]);
    _mm512_storeu_ps(tile + r * panel_columns + 16, right[r]);
  }
}

template <std::size_t... R>
constexpr std::array<MultiplyPanel, sizeof...(R)> table_of(std::index_sequence<R...>) {
  return {multiply_block<static_cast<int>(R) + 1>...};
}

}  // namespace

const MultiplyPanel* pair_products() {
  static constexpr auto table = table_of(std::make_index_sequence<pairs_block_rows>());
  return table.data();
}

}  // namespace cermet::cpu

#pragma GCC pop_options

#else

namespace cermet::cpu {

const MultiplyPanel* pair_products() {
  assertion_failed("an x86 processor with AVX-512 BF16", __FILE_NAME__, __LINE__);
}

}  // namespace cermet::cpu

#endif

namespace cermet::cpu {

std::optional<std::string> pairs_decline() {
  // Processors have 2, 1 or 1/2: a bound between them, so that noise in the measurement decides nothing.
  constexpr double worth_it = 1.5;
  const std::string& wanted = env::value(env::Name::CERMET_BF16_PRODUCTS);
  if (wanted != "auto" && wanted != "on" && wanted != "off")
    fail(Status::invalid_argument, "environment variable CERMET_BF16_PRODUCTS: expected auto, on or off, found '{}'",
         wanted);
  if (active_isa() < Isa::avx512_bf16) return fmt::format("{} has no bf16 dot product", name_of(active_isa()));
  if (wanted == "off") return "switched off by CERMET_BF16_PRODUCTS";
  if (wanted == "on" || bf16_ratio() >= worth_it) return std::nullopt;
  return fmt::format("this machine's bf16 dot products were measured at {:.2f} times float32, less than {}",
                     bf16_ratio(), worth_it);
}

}  // namespace cermet::cpu
