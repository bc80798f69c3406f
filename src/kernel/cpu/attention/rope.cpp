#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/attention/rope.cpp"
#include <hwy/foreach_target.h>

#include "kernel/cpu/by_dtype.hpp"
#include "kernel/cpu/rowwise/quantized-inl.hpp"
#include "kernel/cpu/tile-inl.hpp"
#include "kernel/kernel.hpp"
#include "op/operands.hpp"
#include "op/schema/reference.hpp"

#ifndef CERMET_ROPE_ONCE
#define CERMET_ROPE_ONCE
namespace cermet::cpu {
struct Rope {
  bool neox;
  float direction;   ///< -1 rotates back
  float factors[2];  ///< of the results
};
}  // namespace cermet::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {

inline std::int64_t heads_of(const TensorView& x) { return x.shape[x.shape.rank() - 2]; }

/// Rotates n pairs (first[i], second[i]) by the angles in c and s.
template <class X, class Y>
HWY_INLINE void rotate_halves(const X* first, const X* second, Y* first_out, Y* second_out, const float* c,
                              const float* s, std::size_t n) {
  for_vectors(n, [&](std::size_t i, std::size_t count) HWY_ATTR {
    const auto a = load_n(first + i, count), b = load_n(second + i, count), cosine = load_n(c + i, count),
               sine = load_n(s + i, count);
    store_n(hn::NegMulAdd(b, sine, hn::Mul(a, cosine)), first_out + i, count);
    store_n(hn::MulAdd(a, sine, hn::Mul(b, cosine)), second_out + i, count);
  });
}

/// Rotates n pairs that follow each other in memory.
template <class X, class Y>
HWY_INLINE void rotate_pairs(const X* x, Y* y, const float* c, const float* s, std::size_t n) {
  TileBuffer pairs;
  for (std::size_t begin = 0; begin < n; begin += tile_size / 2) {
    const std::size_t count = HWY_MIN(tile_size / 2, n - begin);
    convert_from(x + 2 * begin, pairs.data, 2 * count);
    for (std::size_t i = 0; i < count; ++i) {
      const float a = pairs.data[2 * i], b = pairs.data[2 * i + 1], cosine = c[begin + i], sine = s[begin + i];
      pairs.data[2 * i] = a * cosine - b * sine;
      pairs.data[2 * i + 1] = b * cosine + a * sine;
    }
    convert_to(pairs.data, y + 2 * begin, 2 * count);
  }
}

/// All heads of one token, for the pairs [first, first + n) of each head.
template <class X, class Y>
void rotate_heads(const Rows& from, const Rows& to, std::int64_t token, std::int64_t heads, std::size_t half,
                  std::size_t first, std::size_t n, const float* c, const float* s, bool neox) {
  for (std::int64_t r = token * heads; r < (token + 1) * heads; ++r) {
    const auto* x = reinterpret_cast<const X*>(from.row(r));
    auto* y = reinterpret_cast<Y*>(to.row(r));
    if (neox) rotate_halves(x + first, x + half + first, y + first, y + half + first, c, s, n);
    else rotate_pairs(x + 2 * first, y + 2 * first, c, s, n);
  }
}

/// The same with results in fp8.
template <class X>
void quantize_heads(const Rows& from, const Rows& to, DType dtype, std::int64_t token, std::int64_t heads,
                    std::size_t half, std::size_t first, std::size_t n, const float* c, const float* s, bool neox) {
  HWY_ALIGN float rotated[2 * tile_size];
  float* const second = rotated + tile_size;
  for (std::int64_t r = token * heads; r < (token + 1) * heads; ++r) {
    const auto* x = reinterpret_cast<const X*>(from.row(r));
    std::byte* const y = to.row(r);
    if (neox) {
      rotate_halves(x + first, x + half + first, rotated, second, c, s, n);
      write_quantized(rotated, dtype, y + first, n);
      write_quantized(second, dtype, y + half + first, n);
    } else {
      rotate_pairs(x + 2 * first, rotated, c, s, n);
      write_quantized(rotated, dtype, y + 2 * first, 2 * n);
    }
  }
}
template <class X>
void quantize_rest(const Rows& from, const Rows& to, DType dtype, std::int64_t token, std::int64_t heads,
                   std::size_t rotary, float factor) {
  const auto length = static_cast<std::size_t>(from.length());
  TileBuffer scaled;
  for (std::int64_t r = token * heads; rotary < length && r < (token + 1) * heads; ++r)
    for_tiles(length - rotary, [&](std::size_t first, std::size_t n) HWY_ATTR {
      const auto* x = reinterpret_cast<const X*>(from.row(r)) + rotary + first;
      for_vectors(n, [&](std::size_t i, std::size_t count) HWY_ATTR {
        store_n(hn::Mul(load_n(x + i, count), hn::Set(FloatTag(), factor)), scaled.data + i, count);
      });
      write_quantized(scaled.data, dtype, to.row(r) + rotary + first, n);
    });
}

/// Elements behind the rotated ones are copied, unless they already are in place.
template <class X, class Y>
void copy_rest(const Rows& from, const Rows& to, std::int64_t token, std::int64_t heads, std::size_t rotary,
               float factor) {
  const auto length = static_cast<std::size_t>(from.length());
  for (std::int64_t r = token * heads; rotary < length && r < (token + 1) * heads; ++r) {
    const auto* x = reinterpret_cast<const X*>(from.row(r)) + rotary;
    auto* y = reinterpret_cast<Y*>(to.row(r)) + rotary;
    for_vectors(length - rotary, [&](std::size_t i, std::size_t n) HWY_ATTR {
      store_n(hn::Mul(load_n(x + i, n), hn::Set(FloatTag(), factor)), y + i, n);
    });
  }
}

/// Y is `void` for results in fp8.
template <class X, class Y>
void rope_tokens(const LaunchArgs& args, const Rope& rope) {
  const TensorView &cos = args.inputs[op::rope::cos], &sin = args.inputs[op::rope::sin],
                   &positions = args.inputs[op::rope::positions];
  const Rows cos_rows(cos), sin_rows(sin);
  const auto half = static_cast<std::size_t>(cos_rows.length());
  const std::size_t results = args.has(1) ? 2 : 1;
  args.pool->parallel_for(positions.elements(), 1, [&](std::int64_t begin, std::int64_t end) {
    TileBuffer cos_buffer, sin_buffer, scaled_cos, signed_sin;
    for (std::int64_t token = begin; token < end; ++token) {
      const std::int64_t position = load_index(positions, token);
      check_index("rope", "positions", position, cos.shape[0]);
      for_tiles(half, [&](std::size_t first, std::size_t n) HWY_ATTR {
        const float* c = RowIn{cos_rows.row(position), cos.dtype}.read(first, n, cos_buffer);
        const float* s = RowIn{sin_rows.row(position), sin.dtype}.read(first, n, sin_buffer);
        for (std::size_t o = 0; o < results; ++o) {
          const float factor = rope.factors[o];
          for (std::size_t i = 0; i < n; ++i) {
            scaled_cos.data[i] = factor * c[i];
            signed_sin.data[i] = factor * rope.direction * s[i];
          }
          const Rows from(args.inputs[o]), to(args.outputs[o]);
          const std::int64_t heads = heads_of(args.inputs[o]);
          if constexpr (std::is_void_v<Y>)
            quantize_heads<X>(from, to, args.outputs[o].dtype, token, heads, half, first, n, scaled_cos.data,
                              signed_sin.data, rope.neox);
          else rotate_heads<X, Y>(from, to, token, heads, half, first, n, scaled_cos.data, signed_sin.data, rope.neox);
        }
      });
      for (std::size_t o = 0; o < results; ++o) {
        const Rows from(args.inputs[o]), to(args.outputs[o]);
        const std::int64_t heads = heads_of(args.inputs[o]);
        if constexpr (std::is_void_v<Y>)
          quantize_rest<X>(from, to, args.outputs[o].dtype, token, heads, 2 * half, rope.factors[o]);
        else copy_rest<X, Y>(from, to, token, heads, 2 * half, rope.factors[o]);
      }
    }
  });
}

void rope(const LaunchArgs& args, const Rope& parameters) {
  by_real_dtype(args.inputs[0].dtype, [&](auto x_zero) {
    if (dtypes::fp8.contains(args.outputs[0].dtype)) return rope_tokens<decltype(x_zero), void>(args, parameters);
    by_real_dtype(args.outputs[0].dtype,
                  [&](auto y_zero) { rope_tokens<decltype(x_zero), decltype(y_zero)>(args, parameters); });
  });
}

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cermet::cpu {

HWY_EXPORT(rope);

extern const Kernel rowwise_rope{
    .name = "rowwise.rope",
    .op = OpKind::rope,
    .summary = "a token's cosines and sines are read once for all its heads; tokens spread over threads",
    .bind = [](const Problem& p) -> Launcher {
      const Rope parameters{
          p.attributes.text("style") == "neox",
          p.attributes.flag("inverse") ? -1.0f : 1.0f,
          {static_cast<float>(p.attributes.number("q_factor")), static_cast<float>(p.attributes.number("k_factor"))}};
      return [parameters](const LaunchArgs& args) { HWY_DYNAMIC_DISPATCH(rope)(args, parameters); };
    },
};

}  // namespace cermet::cpu
#endif
