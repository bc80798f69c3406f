// Compile-time configuration of GEMVs, matrix products of few rows.
#pragma once

#include "kernel/cuda/device/gemv/params.hpp"
#include "kernel/cuda/device/gemv/shape.hpp"
#include "kernel/cuda/device/mixture/gating_config.cuh"
#include "kernel/cuda/device/tile/rotation_config.cuh"
#include "kernel/cuda/device/types.cuh"

namespace cermet::gemv {

/// What is done to a row of x on its way into registers. Every block does it for itself; the first one stores `sum` and
/// `normed`.
struct Prologue {
  bool norm = false;  ///< rms_norm(x + delta) * (norm_weight + norm_offset)
  DType delta = DType::f32, weight = DType::f32, sum = DType::f32;
  bool round_sum = false;      ///< the sum is rounded to its type before it is normalized
  DType rounded = DType::f32;  ///< what the normalized row is rounded to before it is multiplied
  bool normed = false;         ///< the normalized row leaves, as
  DType normed_type = DType::f32;
  bool quantize = false;    ///< with one scale for the row, to
  DType codes = DType::i8;  ///< int8 where the weight is int8, otherwise fp8
  bool wide = false;        ///< the scale is absmax / 127.5
  bool aligned = false;  ///< all of these rows start at multiples of 16 bytes, and K is a multiple of what a lane holds
                         ///< of each piece
};

struct Config {
  int k;  ///< reduction length
  DType x, w;
  DType offsets = DType::i32;
  bool blocked = false;  ///< scales of 128 reduction steps
  bool dual = false;     ///< a second weight
  bool grouped = false;
  bool rest = false;  ///< of grouped: rows from the last group's end on have no weight, and are 0
  bool routed =
      false;  ///< of grouped: rows are pairs of a token and a choice, sorted by expert here, as moe_permute does
  DType ids = DType::i32;
  bool chooses = false;  ///< of routed: the only token's experts are chosen here, too, as topk_gating does
  gating::Config gating = {};
  int choices = 0;                    ///< experts of a token whose rows are weighted and added: see combine.cuh
  bool stream = false;                ///< weights come through stages in shared memory (sm_90 on)
  int ring_bytes = usual_ring_bytes;  ///< of those stages, about
  int warps = 0;                      ///< that multiply; 0: as many as is usual for the length
  int in_flight = 0;                  ///< stages at most whose bytes are on their way; 0: all
  bool late = false;                  ///< the next launch starts when those before this one have ended
  bool early = false;                 ///< it starts at once, though the weight is int8 and the row another launch's
  bool rehearses = false;  ///< a block goes through its first stage while earlier launches run, so that its code is
                           ///< there when they end
  bool compact = false;    ///< rows of the weight have 12 bits an element: compact.cuh
  Prologue prologue = {};
  rotation::Config rotation = {};
};

template <Config C>
inline constexpr bool integer = C.w == DType::i8;
/// Sums of products.
template <bool Integer>
struct SumOf {
  using type = float;
};
template <>
struct SumOf<true> {
  using type = int32_t;
};
template <Config C>
using Sum = typename SumOf<integer<C>>::type;

template <bool Rotates, bool Chooses>
struct ParamsOf {
  using type = Params;
};
template <>
struct ParamsOf<true, false> {
  using type = RotatedParams;
};
template <>
struct ParamsOf<false, true> {
  using type = ChoosingParams;
};

}  // namespace cermet::gemv
