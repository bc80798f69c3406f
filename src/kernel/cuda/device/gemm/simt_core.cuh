// Sums of a tile on the CUDA cores: float32 multiply-adds in the order of k, or byte dot products. Tiles of the
// operands pass through shared memory, transposed to [k][outer], while the next ones are on their way in registers.
#pragma once

#include "kernel/cuda/device/gemm/general.hpp"
#include "kernel/cuda/device/team.cuh"

namespace cermet::gemm {

/// A unit of the reduction as it lies in shared memory: a float32, or four int8.
template <DType T>
struct Unit {
  using type = float;
  static constexpr int steps = 1;
};
template <>
struct Unit<DType::i8> {
  using type = int32_t;
  static constexpr int steps = 4;
};

CERMET_DEVICE void multiply_add(float& sum, float a, float b) { sum = fmaf(a, b, sum); }
CERMET_DEVICE void multiply_add(int32_t& sum, int32_t a, int32_t b) { sum = __dp4a(a, b, sum); }

template <GeneralConfig C, class Team>
struct SimtCore {
  using A = Element<C.a>;
  using B = Element<C.b>;
  using Word = typename Unit<C.a>::type;
  using Sum = Word;
  static constexpr bool integers = C.a == DType::i8;
  static constexpr int threads = general_threads, steps = Unit<C.a>::steps;
  static constexpr int tile = C.block, depth = 16;  // units of k in shared memory
  static constexpr int pitch = tile + 4;
  static constexpr int own = tile / 16, half = own / 2;  // a thread's rows, and its columns in each half of the tile
  static constexpr int words = tile * depth / threads;   // that a thread loads of each operand

  /// Row of sums[i] and column of sums[..][j] in the tile: 4 or 2 neighbours in each half.
  static __device__ int row_of(int i) { return offset_of(static_cast<int>(Team::rank()) / 16, i); }
  static __device__ int column_of(int j) { return offset_of(static_cast<int>(Team::rank()) % 16, j); }
  static __device__ int offset_of(int index, int i) { return (i < half ? 0 : tile / 2 - half) + index * half + i; }

  /// One operand's tile on its way to shared memory: unit u of thread t is (outer, k) at `outer_of(u)`.
  template <class T, bool Outer>
  struct Stage {
    Word held[words];

    /// Four neighbours at a time, along k or along the outer axis.
    static __device__ int outer_of(int quad) {
      if constexpr (Outer) return (static_cast<int>(Team::rank()) + quad * threads) % (tile / 4) * 4;
      else return (static_cast<int>(Team::rank()) + quad * threads) / (depth / 4);
    }
    static __device__ int unit_of(int quad) {
      if constexpr (Outer) return (static_cast<int>(Team::rank()) + quad * threads) / (tile / 4);
      else return (static_cast<int>(Team::rank()) + quad * threads) % (depth / 4) * 4;
    }
    /// row(outer): address of (outer, 0), null past the end. `last` bounds k.
    template <class Row>
    __device__ void load(Row&& row, int64_t k_step, int k, int last, bool vectors) {
#pragma unroll
      for (int quad = 0; quad < words / 4; ++quad) {
        const int outer = outer_of(quad), from = k + unit_of(quad) * steps;
        if constexpr (!Outer) {
          const T* const at = row(outer);
          if (at != nullptr && vectors && from + 4 * steps <= last) load_vector(at + from, held + 4 * quad);
          else
#pragma unroll
            for (int i = 0; i < 4; ++i) held[4 * quad + i] = load_unit(at, k_step, from + i * steps, last);
        } else {
          const T* const at = row(outer);
          if (vectors && at != nullptr && row(outer + 3) != nullptr && from < last)
            load_vector(at + from * k_step, held + 4 * quad);
          else
#pragma unroll
            for (int i = 0; i < 4; ++i) held[4 * quad + i] = load_unit(row(outer + i), k_step, from, last);
        }
      }
    }
    __device__ void store(Word* shared) const {
#pragma unroll
      for (int quad = 0; quad < words / 4; ++quad) {
        Word* const at = shared + unit_of(quad) * pitch + outer_of(quad);
#pragma unroll
        for (int i = 0; i < 4; ++i) at[Outer ? i : i * pitch] = held[4 * quad + i];
      }
    }
    static __device__ void load_vector(const T* at, Word* to) {
      if constexpr (integers) {
        const auto v = *reinterpret_cast<const Vector<int32_t, 4>*>(at);
#pragma unroll
        for (int i = 0; i < 4; ++i) to[i] = v[i];
      } else {
        const auto v = *reinterpret_cast<const Vector<T, 4>*>(at);
#pragma unroll
        for (int i = 0; i < 4; ++i) to[i] = to_float(v[i]);
      }
    }
    static __device__ Word load_unit(const T* at, int64_t k_step, int k, int last) {
      Word word = 0;
      if (at == nullptr) return word;
      if constexpr (integers) {
        uint32_t quantized = 0;
#pragma unroll
        for (int i = 0; i < 4; ++i)
          if (k + i < last) quantized |= static_cast<uint32_t>(static_cast<uint8_t>(at[k + i])) << 8 * i;
        word = static_cast<int32_t>(quantized);
      } else {
        if (k < last) word = to_float(at[k * k_step]);
      }
      return word;
    }
  };

  /// Adds to the sums of a tile reduction steps [first, last). a_row(outer) and b_row(outer): address of element
  /// (outer, 0), null past the end.
  template <class ARow, class BRow>
  static CERMET_DEVICE void multiply(const GeneralParams& p, ARow&& a_row, BRow&& b_row, int first, int last,
                                     char* smem, Word (&sums)[own][own]) {
    multiply_stages(first, last, smem, sums, [&](int k, Stage<A, C.a_outer>& a, Stage<B, C.b_outer>& b) {
      a.load(a_row, p.a_k, k, last, p.a_vectors);
      b.load(b_row, p.b_k, k, last, p.b_vectors);
    });
  }

  /// The same; fill(k, a, b) loads both operands' stages from step k on. It is called for one stage after the other.
  template <class Fill>
  static CERMET_DEVICE void multiply_stages(int first, int last, char* smem, Word (&sums)[own][own], Fill&& fill) {
    Word* const a_tile = reinterpret_cast<Word*>(smem);  // [2][depth][pitch]
    Word* const b_tile = a_tile + 2 * depth * pitch;
    Stage<A, C.a_outer> a;
    Stage<B, C.b_outer> b;
    const int ty = static_cast<int>(Team::rank()) / 16, tx = static_cast<int>(Team::rank()) % 16;
    fill(first, a, b);
    int buffer = 0;
    for (int k = first; k < last; k += depth * steps, buffer ^= 1) {
      a.store(a_tile + buffer * depth * pitch);
      b.store(b_tile + buffer * depth * pitch);
      Team::sync();
      if (k + depth * steps < last) fill(k + depth * steps, a, b);
#pragma unroll
      for (int u = 0; u < depth; ++u) {
        const Word* const left = a_tile + (buffer * depth + u) * pitch;
        const Word* const right = b_tile + (buffer * depth + u) * pitch;
        Word x[own], w[own];
        load_fragment(left + ty * half, left + tile / 2 + ty * half, x);
        load_fragment(right + tx * half, right + tile / 2 + tx * half, w);
#pragma unroll
        for (int i = 0; i < own; ++i)
#pragma unroll
          for (int j = 0; j < own; ++j) multiply_add(sums[i][j], x[i], w[j]);
      }
    }
    Team::sync();  // the tiles are free
  }

  static CERMET_DEVICE void load_fragment(const Word* low, const Word* high, Word (&to)[own]) {
    const auto a = *reinterpret_cast<const Vector<Word, half>*>(low),
               b = *reinterpret_cast<const Vector<Word, half>*>(high);
#pragma unroll
    for (int i = 0; i < half; ++i) to[i] = a[i], to[half + i] = b[i];
  }
};

}  // namespace cermet::gemm
