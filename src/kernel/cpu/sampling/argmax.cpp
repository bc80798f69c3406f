#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/sampling/argmax.cpp"
#include <hwy/foreach_target.h>

#include <limits>

#include "kernel/cpu/by_any_dtype.hpp"
#include "kernel/cpu/by_dtype.hpp"
#include "kernel/cpu/sampling/argmax.hpp"
#include "kernel/cpu/vec-inl.hpp"
#include "kernel/kernel.hpp"
#include "op/ordinal.hpp"

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {

/// Lowest index for which wanted(vector) is true in a lane; `length` where there is none.
template <class T, class Wanted>
std::size_t find_first(const T* x, std::size_t length, Wanted&& wanted) {
  const std::size_t step = lanes();
  for (std::size_t i = 0; i < length; i += step) {
    const std::size_t count = std::min(step, length - i);
    const auto found = hn::FindFirstTrue(FloatTag(), wanted(load_n(x + i, count)));
    if (found >= 0 && static_cast<std::size_t>(found) < count) return i + static_cast<std::size_t>(found);
  }
  return length;
}

/// The row's maximum first, then the place where it, or a NaN, comes first.
template <class T>
std::size_t argmax_row(const T* x, std::size_t length) {
  const float lowest = -std::numeric_limits<float>::infinity();
  auto largest = hn::Set(FloatTag(), lowest), poison = hn::Zero(FloatTag());
  for_vectors(length, [&](std::size_t i, std::size_t n) HWY_ATTR {
    const auto v = load_n(x + i, n, lowest);
    largest = hn::Max(largest, v);
    poison = hn::IfThenElse(hn::IsNaN(v), v, poison);
  });
  if (!hn::AllFalse(FloatTag(), hn::IsNaN(poison)))
    return find_first(x, length, [](Floats v) HWY_ATTR { return hn::IsNaN(v); });
  const auto wanted = hn::Set(FloatTag(), max_lanes(largest));
  return find_first(x, length, [&](Floats v) HWY_ATTR { return hn::Eq(v, wanted); });
}

std::int64_t find_argmax(const std::byte* row, DType dtype, std::int64_t length) {
  return by_real_dtype(dtype, [&](auto zero) {
    return static_cast<std::int64_t>(
        argmax_row(reinterpret_cast<const decltype(zero)*>(row), static_cast<std::size_t>(length)));
  });
}

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cermet::cpu {

HWY_EXPORT(find_argmax);

std::int64_t argmax_of_row(const std::byte* row, DType dtype, std::int64_t length) {
  return HWY_DYNAMIC_DISPATCH(find_argmax)(row, dtype, length);
}

namespace {

struct Choice {
  bool smallest, last;
};

/// Any type, either end, either of equal elements: one pass, one element after the other.
template <class T>
std::int64_t choose(const T* x, std::int64_t length, const Choice& choice) {
  constexpr std::int64_t highest = std::numeric_limits<std::int64_t>::max();
  const auto key = [&](std::int64_t i) {
    const std::int64_t k = ordinal(x[i]);
    if (!choice.smallest) return k;
    if constexpr (!std::is_integral_v<T>)
      if (k == highest) return k;  // NaN wins over the smallest, too
    return ~k;
  };
  std::int64_t best = 0, best_key = key(0);
  for (std::int64_t i = 1; i < length; ++i) {
    const std::int64_t k = key(i);
    if (k < best_key || (k == best_key && !choice.last)) continue;
    best = i;
    best_key = k;
  }
  return best;
}

std::int64_t choose(const std::byte* row, DType dtype, std::int64_t length, const Choice& choice) {
  if (!choice.smallest && !choice.last && dtypes::real.contains(dtype)) return argmax_of_row(row, dtype, length);
  return by_number_dtype(
      dtype, [&](auto zero) { return choose(reinterpret_cast<const decltype(zero)*>(row), length, choice); });
}

void launch(const LaunchArgs& args, const Choice& choice) {
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  const Rows from(x), to(y, 0);
  if (from.count() == 0) return;
  if (from.length() == 0)
    fail(Status::invalid_argument, "argmax: operand 0 (x): expected at least one element in a row, found {}",
         x.shape.to_string());
  args.pool->parallel_for(from.count(), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      const std::int64_t index = choose(from.row(r), x.dtype, from.length(), choice);
      if (y.dtype == DType::i64) *reinterpret_cast<std::int64_t*>(to.row(r)) = index;
      else *reinterpret_cast<std::int32_t*>(to.row(r)) = static_cast<std::int32_t>(index);
    }
  });
}

}  // namespace

extern const Kernel rowwise_argmax{
    .name = "rowwise.argmax",
    .op = OpKind::argmax,
    .summary =
        "floating maxima: a pass of vectors for the maximum, one for its first place; else one pass of elements; rows "
        "spread over threads",
    .bind = [](const Problem& p) -> Launcher {
      const Choice choice{p.attributes.flag("smallest"), p.attributes.flag("select_last_index")};
      return [choice](const LaunchArgs& args) { launch(args, choice); };
    },
};

}  // namespace cermet::cpu
#endif
