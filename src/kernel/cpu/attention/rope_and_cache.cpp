#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/attention/rope_and_cache.cpp"
#include <hwy/foreach_target.h>

#include "base/checked.hpp"
#include "format/fp8.hpp"
#include "kernel/cpu/attention/cache_stream.hpp"
#include "kernel/cpu/convert.hpp"
#include "kernel/cpu/index_list.hpp"
#include "kernel/cpu/rowwise/inverse_rms-inl.hpp"
#include "kernel/cpu/vec-inl.hpp"
#include "kernel/kernel.hpp"
#include "op/operands.hpp"
#include "op/schema/reference.hpp"

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {

/// x[i] *= (weight[i] + offset) / sqrt(mean(x^2) + eps)
void normalize_head(float* x, const float* weight, std::size_t length, float eps, float offset) {
  const auto scale = hn::Set(FloatTag(), inverse_rms(x, length, eps));
  for_vectors(length, [&](std::size_t i, std::size_t n) HWY_ATTR {
    store_n(hn::Mul(hn::Mul(load_n(x + i, n), scale), hn::Add(load_n(weight + i, n), hn::Set(FloatTag(), offset))),
            x + i, n);
  });
}

/// Rotates the pairs (x[i], x[half + i]), or (x[2 i], x[2 i + 1]), in place.
void rotate_head(float* x, const float* cos, const float* sin, std::size_t half, bool neox) {
  if (neox) {
    for_vectors(half, [&](std::size_t i, std::size_t n) HWY_ATTR {
      const auto a = load_n(x + i, n), b = load_n(x + half + i, n), c = load_n(cos + i, n), s = load_n(sin + i, n);
      store_n(hn::NegMulAdd(b, s, hn::Mul(a, c)), x + i, n);
      store_n(hn::MulAdd(a, s, hn::Mul(b, c)), x + half + i, n);
    });
  } else {
    for (std::size_t i = 0; i < half; ++i) {
      const float a = x[2 * i], b = x[2 * i + 1];
      x[2 * i] = a * cos[i] - b * sin[i];
      x[2 * i + 1] = b * cos[i] + a * sin[i];
    }
  }
}

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cermet::cpu {

HWY_EXPORT(normalize_head);
HWY_EXPORT(rotate_head);

namespace {

using enum op::rope_and_cache::Operand;

struct Settings {
  bool neox;
  float eps, weight_offset;
  KvCacheAxes axes;
};

/// Scratch of one head, all float32.
struct Scratch {
  static std::int64_t floats(std::int64_t head_size, std::int64_t value_size) {
    return round_up(std::max(head_size, value_size) + 2 * head_size, 16);
  }
  float *head, *weight, *cos, *sin;
  Scratch(float* at, std::int64_t head_size, std::int64_t value_size)
      : head(at), weight(at + std::max(head_size, value_size)), cos(weight + head_size), sin(cos + head_size / 2) {}
};

/// The elements of row `at` of a list as float32: in place where they already are, else converted into `buffer`.
const float* row_floats(const TensorView& list, std::int64_t at, float* buffer) {
  const std::byte* row = list.as<std::byte>() + at * byte_size(list.dtype);
  if (list.dtype == DType::f32) return reinterpret_cast<const float*>(row);
  real_converter(list.dtype, DType::f32)(row, reinterpret_cast<std::byte*>(buffer), list.shape.back());
  return buffer;
}

/// Work on one head of all tokens in order, so that the last of equal slots stays.
struct HeadJob {
  const LaunchArgs& args;
  const Settings& settings;
  std::size_t which;  ///< q, k or v
  std::int64_t head;
  Scratch scratch;

  void load(std::int64_t token) const {
    const TensorView& x = args.inputs[which];
    const std::byte* from = x.as<std::byte>() + (token * x.strides[0] + head * x.strides[1]) * byte_size(x.dtype);
    real_converter(x.dtype, DType::f32)(from, reinterpret_cast<std::byte*>(scratch.head), x.shape[2]);
  }

  void rotate(std::int64_t position, const float* weight) const {
    const auto length = static_cast<std::size_t>(args.inputs[which].shape[2]),
               half = static_cast<std::size_t>(args.inputs[cos].shape[1]);
    if (weight)
      HWY_DYNAMIC_DISPATCH(normalize_head)(scratch.head, weight, length, settings.eps, settings.weight_offset);
    const float* c = row_floats(args.inputs[cos], position * args.inputs[cos].strides[0], scratch.cos);
    const float* s = row_floats(args.inputs[sin], position * args.inputs[sin].strides[0], scratch.sin);
    HWY_DYNAMIC_DISPATCH(rotate_head)(scratch.head, c, s, half, settings.neox);
  }

  void run() const {
    const IndexList position_list(args.inputs[positions]), slot_list(args.inputs[slots]);
    const std::size_t weight_operand = which - q + q_weight;
    const float* weight =
        which != v && args.has(weight_operand) ? row_floats(args.inputs[weight_operand], 0, scratch.weight) : nullptr;
    const TensorView& o = args.outputs[0];
    CacheStream cache{args.outputs[which == v ? 2 : 1], nullptr, nullptr, settings.axes};
    if (which != q && args.outputs.size() > 3) cache.token_scales = &args.outputs[which == v ? 4 : 3];
    else if (which != q && args.has(k_scale)) cache.head_scales = &args.inputs[which == v ? v_scale : k_scale];
    for (std::int64_t t = 0; t < slot_list.count(); ++t) {
      if (which != q && slot_list[t] < 0) continue;
      load(t);
      if (which != v) rotate(position_list[t], weight);
      if (which != q) {
        cache.write(scratch.head, slot_list[t], head);
      } else {
        std::byte* to = o.as<std::byte>() + (t * o.strides[0] + head * o.strides[1]) * byte_size(o.dtype);
        if (o.dtype == DType::f8_e4m3)
          std::transform(scratch.head, scratch.head + o.shape[2], reinterpret_cast<format::e4m3*>(to), format::to_e4m3);
        else real_converter(DType::f32, o.dtype)(reinterpret_cast<const std::byte*>(scratch.head), to, o.shape[2]);
      }
    }
  }
};

void check(const LaunchArgs& args, const KvCacheAxes& axes) {
  const IndexList position_list(args.inputs[positions]), slot_list(args.inputs[slots]);
  const TensorView& cache = args.outputs[1];
  for (std::int64_t t = 0; t < slot_list.count(); ++t) {
    check_index("rope_and_cache", "5 (positions)", position_list[t], args.inputs[cos].shape[0]);
    if (slot_list[t] >= 0)
      check_index("rope_and_cache", "8 (slots)", slot_list[t], cache.shape[0] * cache.shape[axes.block]);
  }
}

void launch(const LaunchArgs& args, const Settings& settings) {
  check(args, settings.axes);
  const std::int64_t q_heads = args.inputs[q].shape[1], kv_heads = args.inputs[k].shape[1], d = args.inputs[q].shape[2],
                     dv = args.inputs[v].shape[2];
  float* scratch = reinterpret_cast<float*>(args.workspace);
  constexpr std::int64_t worth_thread = 1024;  // elements that take as long as a loop on several threads costs
  const std::int64_t head_elements = std::max<std::int64_t>(1, args.inputs[q].shape[0] * d);
  args.pool->parallel_for(
      q_heads + 2 * kv_heads, div_up(worth_thread, head_elements), [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          const std::size_t which = i < q_heads ? q : i < q_heads + kv_heads ? k : v;
          const std::int64_t head = which == q ? i : (i - q_heads) % kv_heads;
          HeadJob{args, settings, which, head, Scratch(scratch + i * Scratch::floats(d, dv), d, dv)}.run();
        }
      });
}

}  // namespace

extern const Kernel cache_rope_and_cache{
    .name = "cache.rope_and_cache",
    .op = OpKind::rope_and_cache,
    .summary =
        "each head is normalized and rotated in float32 and stored in the result or its slot; heads spread over "
        "threads",
    .bind = [](const Problem& p) -> Launcher {
      const Settings settings{p.attributes.text("style") == "neox", static_cast<float>(p.attributes.number("eps")),
                              static_cast<float>(p.attributes.number("weight_offset")),
                              KvCacheAxes(p.attributes.text("layout"))};
      return [settings](const LaunchArgs& args) { launch(args, settings); };
    },
    .workspace = [](const Problem& p, int) -> std::int64_t {
      return (p.size(q, 1) + 2 * p.size(k, 1)) * Scratch::floats(p.size(q, 2), p.size(v, 2)) * 4;
    },
};

}  // namespace cermet::cpu
#endif
