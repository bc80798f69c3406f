#include "kernel/cpu/convert.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/convert.cpp"
#include <hwy/foreach_target.h>

#include <cstring>

#include "kernel/cpu/by_dtype.hpp"
#include "kernel/cpu/vec-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {

template <class From, class To>
void convert_run(const std::byte* from, std::byte* to, std::int64_t count) {
  if constexpr (std::is_same_v<From, To>) {
    if (count > 0) std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(To));
  } else {
    const From* x = reinterpret_cast<const From*>(from);
    To* y = reinterpret_cast<To*>(to);
    for_vectors(static_cast<std::size_t>(count),
                [&](std::size_t i, std::size_t n) HWY_ATTR { store_n(load_n(x + i, n), y + i, n); });
  }
}

RunConverter find_real_converter(DType from, DType to) {
  return by_real_dtype(from, [&](auto x) -> RunConverter {
    return by_real_dtype(to, [&](auto y) -> RunConverter { return convert_run<decltype(x), decltype(y)>; });
  });
}

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cermet::cpu {

HWY_EXPORT(find_real_converter);

RunConverter real_converter(DType from, DType to) { return HWY_DYNAMIC_DISPATCH(find_real_converter)(from, to); }

}  // namespace cermet::cpu
#endif
