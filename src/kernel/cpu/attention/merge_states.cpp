#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/attention/merge_states.cpp"
#include <hwy/foreach_target.h>

#include <cmath>

#include "kernel/cpu/tile-inl.hpp"
#include "kernel/kernel.hpp"
#include "op/operands.hpp"

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {

/// y = a * x1 + b * x2 over `length` elements of any real types. A factor of 0 leaves its operand out.
void weighted_sum(const RowIn& x1, float a, const RowIn& x2, float b, const RowOut& y, std::size_t length) {
  TileBuffer buffer1, buffer2, buffer_out;
  const auto zero = hn::Zero(FloatTag());
  for_tiles(length, [&](std::size_t first, std::size_t n) HWY_ATTR {
    const float *from1 = x1.read(first, n, buffer1), *from2 = x2.read(first, n, buffer2);
    float* to = y.tile(first, buffer_out);
    for_vectors(n, [&](std::size_t i, std::size_t count) HWY_ATTR {
      const auto term1 = a == 0 ? zero : hn::Mul(hn::Set(FloatTag(), a), load_n(from1 + i, count));
      const auto term2 = b == 0 ? zero : hn::Mul(hn::Set(FloatTag(), b), load_n(from2 + i, count));
      store_n(hn::Add(term1, term2), to + i, count);
    });
    y.commit(first, n, buffer_out);
  });
}

struct Merged {
  float weight1, weight2, lse;
};

/// The logarithm of a denominator; +inf is also how a state without keys is marked.
float logarithm(float lse) { return lse == INFINITY ? -INFINITY : lse; }

Merged merge(float lse1, float lse2) {
  const float a = logarithm(lse1), b = logarithm(lse2);
  if (a == -INFINITY && b == -INFINITY) return {0, 0, -INFINITY};
  const float top = b > a || std::isnan(b) ? b : a;
  const float wa = std::exp(a - top), wb = std::exp(b - top);
  return {wa / (wa + wb), wb / (wa + wb), top + std::log(wa + wb)};
}

void merge_states(const LaunchArgs& args) {
  const TensorView &x1 = args.inputs[0], &x2 = args.inputs[op::merge_attention_states::o2], &o = args.outputs[0];
  const Rows from1(x1), from2(x2), to(o), lse1(args.inputs[1]), lse2(args.inputs[op::merge_attention_states::lse2]),
      lse(args.outputs[1]);
  const std::int64_t heads = o.shape[1];
  args.pool->parallel_for(to.count(), 1, [&](std::int64_t begin, std::int64_t end) HWY_ATTR {
    for (std::int64_t r = begin; r < end; ++r) {
      const std::int64_t token = r / heads, head = r % heads;
      const Merged m = merge(reinterpret_cast<const float*>(lse1.row(head))[token],
                             reinterpret_cast<const float*>(lse2.row(head))[token]);
      weighted_sum({from1.row(r), x1.dtype}, m.weight1, {from2.row(r), x2.dtype}, m.weight2, {to.row(r), o.dtype},
                   static_cast<std::size_t>(to.length()));
      reinterpret_cast<float*>(lse.row(head))[token] = m.lse;
    }
  });
}

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cermet::cpu {

HWY_EXPORT(merge_states);

extern const Kernel attention_merge_states{
    .name = "attention.merge_states",
    .op = OpKind::merge_attention_states,
    .summary = "one weighted sum per token and head, spread over threads",
    .bind = [](const Problem&) -> Launcher {
      return [](const LaunchArgs& args) {
        HWY_DYNAMIC_DISPATCH(merge_states)
        (args);
      };
    },
};

}  // namespace cermet::cpu
#endif
