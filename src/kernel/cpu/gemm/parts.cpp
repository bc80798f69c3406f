#include "kernel/cpu/gemm/parts.hpp"

#include "base/checked.hpp"
#include "base/env.hpp"
#include "base/error.hpp"
#include "kernel/cpu/amx.hpp"
#include "kernel/cpu/amx_instructions.hpp"
#include "kernel/cpu/gemm/amx.hpp"
#include "kernel/cpu/gemm/amx_sums.hpp"
#include "kernel/cpu/gemm/panels.hpp"
#include "kernel/cpu/isa.hpp"
#include "kernel/cpu/limits.hpp"

#if defined(__x86_64__)
#include <immintrin.h>

#include <algorithm>
#include <array>

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl")

namespace cermet::cpu {
namespace {

constexpr std::int64_t tile_bytes = amx_rows * amx_row_bytes, pair_bytes = 4 * panel_columns,
                       part_bytes = 16 * pair_bytes;

/// The parts of 16 numbers, each in the upper half of a lane. The first is cut off and the second rounded: so the first
/// never becomes infinite, and the signs of the third are not those of the second, whose products with it are left out.
struct Parts {
  __m512i part[part_count];
};

[[gnu::always_inline]] inline Parts parts_of(__m512 x) {
  const __m512i upper = _mm512_set1_epi32(static_cast<int>(0xffff0000u)), half = _mm512_set1_epi32(0x8000);
  const __m512i first = _mm512_and_si512(_mm512_castps_si512(x), upper);
  const __m512 residual = _mm512_sub_ps(x, _mm512_castsi512_ps(first));
  const __m512i second = _mm512_and_si512(_mm512_add_epi32(_mm512_castps_si512(residual), half), upper);
  return {first, second, _mm512_castps_si512(_mm512_sub_ps(residual, _mm512_castsi512_ps(second)))};
}

/// Pairs of bf16: of the upper halves of two vectors.
[[gnu::always_inline]] inline __m512i pairs_of(__m512i first, __m512i second) {
  return _mm512_mask_blend_epi16(0xaaaaaaaau, _mm512_srli_epi32(first, 16), second);
}

/// Splits one pair of steps of 32 columns.
[[gnu::always_inline]] inline void split_pair(PanelParts& p) {
#pragma GCC unroll 2
  for (int v = 0; v < 2; ++v) {
    __m512 first = _mm512_setzero_ps(), second = first;
    if (p.steps > 0) first = _mm512_loadu_ps(p.from + 16 * v);
    if (p.steps > 1) second = _mm512_loadu_ps(p.from + panel_columns + 16 * v);
    const Parts a = parts_of(first), b = parts_of(second);
#pragma GCC unroll 3
    for (int part = 0; part < part_count; ++part)
      _mm512_storeu_si512(p.to + part * part_bytes + 64 * v, pairs_of(a.part[part], b.part[part]));
  }
  p.from += 2 * panel_columns, p.steps -= 2, --p.pairs;
  p.to += pair_bytes;
  if (p.pairs % 16 == 0) p.to += (part_count - 1) * part_bytes;
}

/// Loads a tile of rows, or half of a panel's pairs, of some part.
template <int tile, int part>
[[gnu::always_inline]] inline void load_rows(const std::byte* rows, std::int64_t part_step, int row_tile) {
  load_tile<tile>(rows + part * part_step + row_tile * tile_bytes, amx_row_bytes);
}
template <int tile, int part>
[[gnu::always_inline]] inline void load_columns(const std::byte* panel, int half) {
  load_tile<tile>(panel + part * part_bytes + half * amx_row_bytes, pair_bytes);
}

/// Products of part `of_rows` of a chunk of rows and part `of_panel` of the panel's: the small ones come first, and
/// those that share tiles follow each other.
struct PartPair {
  int of_rows, of_panel;
};
constexpr std::array<PartPair, 6> part_pairs = {{{0, 2}, {0, 1}, {0, 0}, {2, 0}, {1, 0}, {1, 1}}};

/// Two tiles of rows: four tiles of sums, four of operands.
template <int step>
[[gnu::always_inline]] inline void multiply_two(const std::byte* rows, std::int64_t part_step, const std::byte* panel) {
  constexpr PartPair now = part_pairs[step], before = part_pairs[step == 0 ? 0 : step - 1];
  if constexpr (step == 0 || now.of_rows != before.of_rows)
    load_rows<4, now.of_rows>(rows, part_step, 0), load_rows<5, now.of_rows>(rows, part_step, 1);
  if constexpr (step == 0 || now.of_panel != before.of_panel)
    load_columns<6, now.of_panel>(panel, 0), load_columns<7, now.of_panel>(panel, 1);
  AmxBf16::multiply<0, 4, 6>(), AmxBf16::multiply<1, 4, 7>(), AmxBf16::multiply<2, 5, 6>(),
      AmxBf16::multiply<3, 5, 7>();
}

/// Three tiles of rows: six tiles of sums leave two for operands, and what is loaded again is in the first-level cache.
template <int step>
[[gnu::always_inline]] inline void multiply_three(const std::byte* rows, std::int64_t part_step,
                                                  const std::byte* panel) {
  constexpr PartPair now = part_pairs[step];
  load_columns<7, now.of_panel>(panel, 0);
  load_rows<6, now.of_rows>(rows, part_step, 0), AmxBf16::multiply<0, 6, 7>();
  load_rows<6, now.of_rows>(rows, part_step, 1), AmxBf16::multiply<2, 6, 7>();
  load_rows<6, now.of_rows>(rows, part_step, 2), AmxBf16::multiply<4, 6, 7>();
  load_columns<7, now.of_panel>(panel, 1);
  AmxBf16::multiply<5, 6, 7>();
  load_rows<6, now.of_rows>(rows, part_step, 1), AmxBf16::multiply<3, 6, 7>();
  load_rows<6, now.of_rows>(rows, part_step, 0), AmxBf16::multiply<1, 6, 7>();
}

template <int row_tiles>
void multiply_parts(const std::byte* rows, std::int64_t row_count, const std::byte* panel, std::int64_t chunks,
                    bool begins, PanelParts& next, std::int64_t share, float* sums) {
  if (begins) for_sums<row_tiles>(sums, []<int tile>(float*) { zero_tile<tile>(); });
  else for_sums<row_tiles>(sums, []<int tile>(float* at) { load_tile<tile>(at, sums_step); });
  const std::int64_t part_step = row_count * amx_row_bytes;
  PanelParts parts = next;
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
    std::int64_t due = 0;  // sixths of a pair
    const auto step = [&]<int number>(std::integral_constant<int, number>) [[gnu::always_inline]] {
      if constexpr (row_tiles == 2) multiply_two<number>(rows, part_step, panel);
      else multiply_three<number>(rows, part_step, panel);
      for (due += share; due > 0 && parts.pairs > 0; due -= static_cast<std::int64_t>(part_pairs.size()))
        split_pair(parts);
    };
    step(std::integral_constant<int, 0>()), step(std::integral_constant<int, 1>()),
        step(std::integral_constant<int, 2>());
    step(std::integral_constant<int, 3>()), step(std::integral_constant<int, 4>()),
        step(std::integral_constant<int, 5>());
    rows += part_count * part_step;
    panel += parts_panel_bytes;
  }
  next = parts;
  for_sums<row_tiles>(sums, []<int tile>(float* at) { store_tile<tile>(at, sums_step); });
  // GCC 12 leaves it out where the file has no AVX by itself, and SSE instructions of the callers then wait for each
  // other. Its intrinsic, where it is there already, costs a twentieth of the whole product: other registers are
  // spilled.
  asm volatile("vzeroupper");
}

/// Packs a chunk of `steps` elements, times factors unless they are null, as [part][row][32], of which it is row `row`.
[[gnu::always_inline]] inline void pack_chunk(const float* from, const float* factors, std::int64_t steps,
                                              std::int64_t row, std::int64_t rows, std::byte* packed) {
  const std::uint32_t given = steps >= parts_steps ? 0xffffffffu : (1u << steps) - 1;
  const auto first_half = static_cast<__mmask16>(given), second_half = static_cast<__mmask16>(given >> 16);
  __m512 x = _mm512_maskz_loadu_ps(first_half, from), y = _mm512_maskz_loadu_ps(second_half, from + 16);
  if (factors) {
    x = _mm512_mul_ps(x, _mm512_maskz_loadu_ps(first_half, factors));
    y = _mm512_mul_ps(y, _mm512_maskz_loadu_ps(second_half, factors + 16));
  }
  const Parts left = parts_of(x), right = parts_of(y);
  for (int part = 0; part < part_count; ++part) {
    std::byte* const to = packed + (part * rows + row) * amx_row_bytes;
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_cvtepi32_epi16(_mm512_srli_epi32(left.part[part], 16)));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + 32),
                        _mm512_cvtepi32_epi16(_mm512_srli_epi32(right.part[part], 16)));
  }
}

}  // namespace

void pack_parts(const Rows& rows, std::int64_t first, std::int64_t last, std::byte* packed) {
  const std::int64_t count = last - first, length = rows.length();
  for (std::int64_t k = 0; k < length; k += parts_steps, packed += count * parts_row_bytes)
    for (std::int64_t r = 0; r < count; ++r)
      pack_chunk(reinterpret_cast<const float*>(rows.row(first + r)) + k, nullptr, length - k, r, count, packed);
}

void pack_parts(const WindowRows& windows, std::int64_t first, std::int64_t last, std::byte* packed) {
  const std::int64_t count = last - first, channels = windows.channels(),
                     tap_bytes = div_up(channels, parts_steps) * count * parts_row_bytes;
  for (std::int64_t r = 0; r < count; ++r) {
    const WindowRows::Window window = windows.window(first + r);
    const float* const factors = windows.factors(window);
    for (std::int64_t tap = 0; tap < windows.taps(); ++tap) {
      const float* const from = windows.at(window, tap);
      std::byte* to = packed + tap * tap_bytes;
      for (std::int64_t c = 0; c < channels; c += parts_steps, to += count * parts_row_bytes)
        pack_chunk(from ? from + c : nullptr, factors ? factors + c : nullptr, from ? channels - c : 0, r, count, to);
    }
  }
}

void split_remaining(PanelParts& parts) {
  while (parts.pairs > 0) split_pair(parts);
}

PartsProduct parts_product(std::int64_t row_tiles) { return row_tiles == 2 ? multiply_parts<2> : multiply_parts<3>; }

}  // namespace cermet::cpu

#pragma GCC pop_options

#else

namespace cermet::cpu {

void pack_parts(const Rows&, std::int64_t, std::int64_t, std::byte*) {
  assertion_failed("an x86 processor with AMX", __FILE_NAME__, __LINE__);
}
void pack_parts(const WindowRows&, std::int64_t, std::int64_t, std::byte*) {
  assertion_failed("an x86 processor with AMX", __FILE_NAME__, __LINE__);
}
void split_remaining(PanelParts&) { assertion_failed("an x86 processor with AMX", __FILE_NAME__, __LINE__); }
PartsProduct parts_product(std::int64_t) { assertion_failed("an x86 processor with AMX", __FILE_NAME__, __LINE__); }

}  // namespace cermet::cpu

#endif

namespace cermet::cpu {

PanelParts::PanelParts(const float* slice, std::int64_t slice_steps, std::byte* parts)
    : from(slice), steps(slice_steps), pairs(div_up(slice_steps, parts_steps) * (parts_steps / 2)), to(parts) {}

double parts_ratio() { return amx_bf16_ratio() / 6; }

std::optional<std::string> parts_decline() {
  constexpr double worth_it = 1.5;  // of registers; half of the difference is lost to caches and to splitting
  if (std::optional<std::string> reason = amx_decline(DType::bf16)) return reason;
  if (env::value(env::Name::CERMET_AMX_PRODUCTS) == "on" || parts_ratio() >= worth_it) return std::nullopt;
  return fmt::format(
      "six bf16 products of this machine's AMX tiles were measured at {:.2f} times one of float32, less than {}",
      parts_ratio(), worth_it);
}

}  // namespace cermet::cpu
