#include "kernel/cpu/attention/pairs.hpp"

#include "kernel/cpu/gemm/bf16.hpp"

#if defined(__x86_64__)
#include <immintrin.h>

#include <algorithm>
#include <cstring>

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")

namespace cermet::cpu {
namespace {

__m512bh load_pairs(const void* p) { return reinterpret_cast<__m512bh>(_mm512_loadu_si512(p)); }

__m512 add_neighbours(__m512 a, __m512 b) { return _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b)); }

/// Sums of the lanes of four vectors.
__m128 sums_of(const __m512 (&x)[4]) {
  // Of every block of four lanes.
  const __m512 all = add_neighbours(add_neighbours(x[0], x[2]), add_neighbours(x[1], x[3]));
  const __m256 half = _mm256_add_ps(_mm512_castps512_ps256(all), _mm512_extractf32x8_ps(all, 1));
  return _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
}

template <int R>
void score_few(const std::byte* queries, const TileRows& keys, std::int64_t count, std::int64_t length,
               const TileRows* ahead, float* scores) {
  const std::int64_t bytes = 2 * length;
  for (std::int64_t first = 0; first < count; first += 4) {
    __m512 dot[R][4];
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) dot[r][i] = _mm512_setzero_ps();
    for (std::int64_t at = 0; at < bytes; at += 64) {
      __m512bh key[4];
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) key[i] = load_pairs(keys.row[first + i] + at);
      if (ahead)
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i) __builtin_prefetch(ahead->row[first + i] + at, 0, 2);
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) {
        const __m512bh query = load_pairs(queries + r * bytes + at);
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i) dot[r][i] = _mm512_dpbf16_ps(dot[r][i], query, key[i]);
      }
    }
    const __m128 factor = _mm_loadu_ps(keys.factor + first);
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) _mm_storeu_ps(scores + r * key_tile + first, _mm_mul_ps(sums_of(dot[r]), factor));
  }
}

__m512bh broadcast_pair(const std::byte* p) {
  std::int32_t pair;
  std::memcpy(&pair, p, sizeof pair);
  return reinterpret_cast<__m512bh>(_mm512_set1_epi32(pair));
}

/// Scores of K keys and V vectors of rows.
template <int K, int V>
void score_block(const std::byte* query, std::int64_t rows, const TileRows& keys, std::int64_t first,
                 std::int64_t length, float* scores) {
  __m512 sum[K][V];
  const std::byte* key[K];
#pragma GCC unroll 16
  for (int i = 0; i < K; ++i) {
    key[i] = keys.row[first + i];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) sum[i][v] = _mm512_setzero_ps();
  }
  for (std::int64_t at = 0; at < 2 * length; at += 4, query += 4 * rows) {
    __m512bh column[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) column[v] = load_pairs(query + 64 * v);
#pragma GCC unroll 16
    for (int i = 0; i < K; ++i) {
      const __m512bh pair = broadcast_pair(key[i] + at);
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) sum[i][v] = _mm512_dpbf16_ps(sum[i][v], column[v], pair);
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < K; ++i)
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v)
      _mm512_storeu_ps(scores + (first + i) * rows + 16 * v,
                       _mm512_mul_ps(sum[i][v], _mm512_set1_ps(keys.factor[first + i])));
}

/// Rows begin .. end of a tile, as far as there are any: a few between products, where they find the memory idle.
void prefetch(const TileRows* tile, std::int64_t begin, std::int64_t end, std::int64_t length) {
  for (std::int64_t j = begin; tile && j < std::min(end, key_tile); ++j)
    for (std::int64_t at = 0; at < 2 * length; at += 64) __builtin_prefetch(tile->row[j] + at, 0, 2);
}

template <int V>
void score_columns(const std::byte* query, std::int64_t rows, const TileRows& keys, std::int64_t count,
                   std::int64_t length, const TileRows* ahead, float* scores) {
  constexpr int most = V == 4 ? 6 : V == 2 ? 12 : 8;  // sums that fit the registers
  std::int64_t j = 0;
  for (; j + most <= count; j += most) {
    prefetch(ahead, j, j + most, length);
    score_block<most, V>(query, rows, keys, j, length, scores);
  }
  prefetch(ahead, j, key_tile, length);
  for (; j < count; j += 4) score_block<4, V>(query, rows, keys, j, length, scores);
}

/// Two elements of each of P pairs of V vectors of outputs; keys are widened by a shift and a mask.
template <int P, int V>
void value_block(const float* weights, std::int64_t rows, const TileRows& values, std::int64_t count, std::int64_t d,
                 float* output) {
  __m512 sum[2 * P][V];
#pragma GCC unroll 16
  for (int i = 0; i < 2 * P; ++i)
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) sum[i][v] = _mm512_loadu_ps(output + (d + i) * rows + 16 * v);
  const __m512i upper = _mm512_set1_epi32(static_cast<int>(0xffff0000u));
  for (std::int64_t j = 0; j < count; ++j, weights += rows) {
    const std::byte* const value = values.row[j] + 2 * d;
    __m512 weight[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) weight[v] = _mm512_loadu_ps(weights + 16 * v);
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) {
      const auto both = reinterpret_cast<__m512i>(broadcast_pair(value + 4 * p));
      const __m512 even = _mm512_castsi512_ps(_mm512_slli_epi32(both, 16)),
                   odd = _mm512_castsi512_ps(_mm512_and_si512(both, upper));
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) {
        sum[2 * p][v] = _mm512_fmadd_ps(weight[v], even, sum[2 * p][v]);
        sum[2 * p + 1][v] = _mm512_fmadd_ps(weight[v], odd, sum[2 * p + 1][v]);
      }
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < 2 * P; ++i)
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) _mm512_storeu_ps(output + (d + i) * rows + 16 * v, sum[i][v]);
}

template <int V>
void value_columns(const float* weights, std::int64_t rows, const TileRows& values, std::int64_t count,
                   std::int64_t length, const TileRows* ahead, float* output) {
  constexpr int most = V == 4 ? 3 : V == 2 ? 6 : 4;
  std::int64_t d = 0;
  for (; d + 2 * most <= length; d += 2 * most) {
    prefetch(ahead, key_tile * d / length, key_tile * (d + 2 * most) / length, length);
    value_block<most, V>(weights, rows, values, count, d, output);
  }
  prefetch(ahead, key_tile * d / length, key_tile, length);
  for (; d < length; d += 2) value_block<1, V>(weights, rows, values, count, d, output);
}

/// Calls body<V>(first row) for rows in blocks of V vectors, 4 where they are.
template <class Body>
void for_row_blocks(std::int64_t rows, Body&& body) {
  std::int64_t r = 0;
  for (; r + 64 <= rows; r += 64) body.template operator()<4>(r);
  for (; r + 32 <= rows; r += 32) body.template operator()<2>(r);
  if (r < rows) body.template operator()<1>(r);
}

void score_tile(const std::byte* queries, std::int64_t rows, const TileRows& keys, std::int64_t count,
                std::int64_t length, const TileRows* ahead, float* scores) {
  for_row_blocks(rows, [&]<int V>(std::int64_t r) {
    score_columns<V>(queries + 4 * r, rows, keys, count, length, r == 0 ? ahead : nullptr, scores + r);
  });
}

void add_values(const float* weights, std::int64_t rows, const TileRows& values, std::int64_t count,
                std::int64_t length, const TileRows* ahead, float* output) {
  for_row_blocks(rows, [&]<int V>(std::int64_t r) {
    value_columns<V>(weights + r, rows, values, count, length, r == 0 ? ahead : nullptr, output + r);
  });
}

bool all_finite(const TileRows& values, std::int64_t count, std::int64_t length) {
  const __m512i exponent = _mm512_set1_epi16(0x7f80);
  __mmask32 found = 0;
  for (std::int64_t j = 0; j < count; ++j)
    for (std::int64_t d = 0; d < length; d += 32) {
      const __mmask32 lanes = length - d >= 32 ? ~__mmask32{0} : (__mmask32{1} << (length - d)) - 1;
      const __m512i x = _mm512_maskz_loadu_epi16(lanes, values.row[j] + 2 * d);
      found |= _mm512_cmpeq_epi16_mask(_mm512_and_si512(x, exponent), exponent);
    }
  return found == 0;
}

constexpr PairAttention products{
    {score_few<1>, score_few<2>, score_few<3>, score_few<4>}, score_tile, add_values, all_finite};

}  // namespace
}  // namespace cermet::cpu

#pragma GCC pop_options

namespace cermet::cpu {

const PairAttention* pair_attention() { return pairs_decline() ? nullptr : &products; }

}  // namespace cermet::cpu

#else

namespace cermet::cpu {

const PairAttention* pair_attention() { return nullptr; }

}  // namespace cermet::cpu

#endif
