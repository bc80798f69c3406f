#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/mixture/gating.cpp"
#include <hwy/foreach_target.h>

#include <algorithm>
#include <limits>

#include "base/checked.hpp"
#include "kernel/cpu/convert.hpp"
#include "kernel/cpu/math-inl.hpp"
#include "kernel/kernel.hpp"
#include "op/float_order.hpp"

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {

/// scores = softmax(logits).
void softmax_scores(const float* logits, float* scores, std::size_t count) {
  const FloatTag f;
  const float lowest = -std::numeric_limits<float>::infinity();
  auto maximum = hn::Set(f, lowest);
  for_vectors(
      count, [&](std::size_t i, std::size_t n) HWY_ATTR { maximum = hn::Max(maximum, load_n(logits + i, n, lowest)); });
  maximum = hn::Set(f, max_lanes(maximum));
  auto sum = hn::Zero(f);
  for_vectors(count, [&](std::size_t i, std::size_t n) HWY_ATTR {
    const auto score = exp(Real(hn::Sub(load_n(logits + i, n, lowest), maximum))).v;
    store_n(score, scores + i, n);
    sum = hn::Add(sum, n == lanes() ? score : load_tail(scores + i, n));
  });
  const auto denominator = hn::Set(f, sum_lanes(sum));
  for_vectors(count, [&](std::size_t i, std::size_t n)
                         HWY_ATTR { store_n(hn::Div(load_n(scores + i, n), denominator), scores + i, n); });
}

/// scores = 1 / (1 + exp(-logits)), with the subnormal ones, which are like others once they are renormalized.
void sigmoid_scores(const float* logits, float* scores, std::size_t count) {
  for_vectors(count, [&](std::size_t i, std::size_t n) HWY_ATTR {
    const Real x = load_n(logits + i, n), e = exp(-abs(x));
    store_n((select(x >= 0, Real(1), e) / (e + 1)).v, scores + i, n);
  });
}

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cermet::cpu {

HWY_EXPORT(softmax_scores);
HWY_EXPORT(sigmoid_scores);

namespace {

struct Gating {
  std::int64_t experts, k, groups, topk_groups;
  bool softmax, renormalize, top2;
  float scale;
};

/// Scratch of one thread, each as long as the experts.
struct Scratch {
  float *logits, *scores, *bias;
  cermet_u32 *keys, *group_keys;
};
constexpr std::int64_t scratch_arrays = 5;
/// Elements that are gone through in about a microsecond, which a loop on several threads costs.
constexpr std::int64_t worth_threads = 2048;

/// Place of the largest key, the first of equal ones.
std::int64_t first_largest(const cermet_u32* keys, std::int64_t count) {
  cermet_u32 largest = 0;
  for (std::int64_t i = 0; i < count; ++i) largest = std::max(largest, keys[i]);
  return std::find(keys, keys + count, largest) - keys;
}

/// Key of a group's score: the sum of its two largest values, or the largest.
cermet_u32 group_key(const cermet_u32* keys, std::int64_t size, bool top2) {
  const std::int64_t best = first_largest(keys, size);
  if (!top2 || size == 1) return keys[best];
  cermet_u32 second = 0;
  for (std::int64_t i = 0; i < size; ++i)
    if (i != best) second = std::max(second, keys[i]);
  return order_key(value_of_order_key(keys[best]) + value_of_order_key(second));
}

/// Sets the keys of experts outside the chosen groups to 0, which is below every number's.
void drop_groups(const Gating& g, const Scratch& s) {
  const std::int64_t size = g.experts / g.groups;
  for (std::int64_t i = 0; i < g.groups; ++i) s.group_keys[i] = group_key(s.keys + i * size, size, g.top2);
  for (std::int64_t i = 0; i < g.topk_groups; ++i) s.group_keys[first_largest(s.group_keys, g.groups)] = 0;
  for (std::int64_t i = 0; i < g.groups; ++i)
    if (s.group_keys[i] != 0) std::fill_n(s.keys + i * size, size, 0u);
}

template <class Id>
void gate_row(const Gating& g, const Scratch& s, bool has_bias, float* weights, Id* ids) {
  const auto count = static_cast<std::size_t>(g.experts);
  if (g.softmax) HWY_DYNAMIC_DISPATCH(softmax_scores)(s.logits, s.scores, count);
  else HWY_DYNAMIC_DISPATCH(sigmoid_scores)(s.logits, s.scores, count);
  const float* choice = has_bias || g.groups > 1 ? s.scores : s.logits;
  for (std::size_t e = 0; e < count; ++e) s.keys[e] = order_key(has_bias ? choice[e] + s.bias[e] : choice[e]);
  if (g.groups > 1) drop_groups(g, s);
  float sum = 0;
  for (std::int64_t j = 0; j < g.k; ++j) {
    const std::int64_t best = first_largest(s.keys, g.experts);
    s.keys[best] = 0;
    ids[j] = static_cast<Id>(best);
    weights[j] = s.scores[best];
    sum += weights[j];
  }
  for (std::int64_t j = 0; j < g.k; ++j) {
    if (g.renormalize) weights[j] = sum == 0 ? 0.0f : weights[j] / sum;
    weights[j] *= g.scale;
  }
}

Scratch scratch_at(std::byte* workspace, std::int64_t experts, int thread) {
  const std::int64_t step = round_up(experts, 16);
  float* base = reinterpret_cast<float*>(workspace) + thread * scratch_arrays * step;
  return {base, base + step, base + 2 * step, reinterpret_cast<cermet_u32*>(base + 3 * step),
          reinterpret_cast<cermet_u32*>(base + 4 * step)};
}

void launch(const LaunchArgs& args, const Gating& g) {
  const TensorView& logits = args.inputs[0];
  const Rows from(logits), weights(args.outputs[0]), ids(args.outputs[1]);
  const RunConverter convert = real_converter(logits.dtype, DType::f32);
  const std::int64_t tokens = from.count();
  const bool wide_ids = args.outputs[1].dtype == DType::i64;
  const int threads = tokens * g.experts * (g.k + scratch_arrays) < worth_threads ? 1 : args.pool->size();
  const auto body = [&](int thread) {
    const Scratch s = scratch_at(args.workspace, g.experts, thread);
    if (args.has(1))
      real_converter(args.inputs[1].dtype, DType::f32)(args.inputs[1].as<std::byte>(),
                                                       reinterpret_cast<std::byte*>(s.bias), g.experts);
    for (std::int64_t t = tokens * thread / threads; t < tokens * (thread + 1) / threads; ++t) {
      convert(from.row(t), reinterpret_cast<std::byte*>(s.logits), g.experts);
      auto* const chosen = reinterpret_cast<float*>(weights.row(t));
      if (wide_ids) gate_row(g, s, args.has(1), chosen, reinterpret_cast<std::int64_t*>(ids.row(t)));
      else gate_row(g, s, args.has(1), chosen, reinterpret_cast<std::int32_t*>(ids.row(t)));
    }
  };
  if (threads == 1) return body(0);
  args.pool->run(body);
}

}  // namespace

extern const Kernel moe_topk_gating{
    .name = "moe.topk_gating",
    .op = OpKind::topk_gating,
    .summary = "vector scores, then k passes over ordered keys; tokens spread over threads",
    .bind = [](const Problem& p) -> Launcher {
      const Attributes& a = p.attributes;
      const Gating gating{p.size(0, 1),
                          a.integer("k"),
                          a.integer("groups"),
                          a.integer("topk_groups"),
                          a.text("score") == "softmax",
                          a.flag("renormalize"),
                          a.text("group_score") == "top2",
                          static_cast<float>(a.number("scale"))};
      return [gating](const LaunchArgs& args) { launch(args, gating); };
    },
    .workspace = [](const Problem& p, int threads) -> std::int64_t {
      return threads * scratch_arrays * round_up(p.size(0, 1), 16) * 4;
    },
};

}  // namespace cermet::cpu
#endif
