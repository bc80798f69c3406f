#include <algorithm>

#include "kernel/cpu/by_any_dtype.hpp"
#include "kernel/cpu/by_size.hpp"
#include "kernel/cpu/movement/axes.hpp"
#include "kernel/kernel.hpp"

namespace cermet::cpu {
namespace {

template <class T>
bool is_nonzero(T x) {
  if constexpr (std::is_arithmetic_v<T>) return x != T{0};
  else return format::to_float(x) != 0.0f;
}

/// Part of x, in rows, that a thread looks at.
struct Part {
  std::int64_t begin, end;
};

template <class T>
void find(const LaunchArgs& args, std::int64_t* counts) {
  const TensorView &x = args.inputs[0], &coordinates = args.outputs[0];
  const Rows rows(x);
  const int threads = args.pool->size(), rank = x.shape.rank();
  const std::int64_t elements = x.elements(), length = rows.length();
  // Threads share out elements rather than rows, of which there may be one.
  const auto part = [&](int thread) { return Part{elements * thread / threads, elements * (thread + 1) / threads}; };
  const auto for_elements = [&](const Part& p, auto&& body) {
    for (std::int64_t i = p.begin; i < p.end;) {
      const T* row = reinterpret_cast<const T*>(rows.row(i / length));
      const std::int64_t column = i % length, count = std::min(length - column, p.end - i);
      for (std::int64_t c = column; c < column + count; ++c)
        if (is_nonzero(row[c])) body(i - column + c);
      i += count;
    }
  };
  args.pool->run([&](int thread) {
    std::int64_t count = 0;
    for_elements(part(thread), [&](std::int64_t) { ++count; });
    counts[thread] = count;
  });
  std::int64_t total = 0;
  for (int t = 0; t < threads; ++t) {
    const std::int64_t own = counts[t];
    counts[t] = total;
    total += own;
  }
  *args.outputs[1].as<std::int64_t>() = total;
  std::int64_t* to = coordinates.as<std::int64_t>();
  const std::int64_t stride = rank > 0 ? coordinates.strides[0] : 0;
  args.pool->run([&](int thread) {
    std::int64_t at = counts[thread];
    for_elements(part(thread), [&](std::int64_t i) {
      for (int a = rank - 1; a >= 0; --a) {
        to[a * stride + at] = i % x.shape[a];
        i /= x.shape[a];
      }
      ++at;
    });
    const Part own = part(thread);
    for (int a = 0; a < rank; ++a)
      for (std::int64_t i = std::max(own.begin, total); i < own.end; ++i) to[a * stride + i] = 0;
  });
}

void list_nonzero(const LaunchArgs& args) {
  const TensorView& x = args.inputs[0];
  if (x.elements() == 0) {
    *args.outputs[1].as<std::int64_t>() = 0;
    return;
  }
  by_any_dtype(x.dtype,
               [&](auto zero) { find<decltype(zero)>(args, reinterpret_cast<std::int64_t*>(args.workspace)); });
}

}  // namespace

extern const Kernel movement_nonzero{
    .name = "movement.nonzero",
    .op = OpKind::nonzero,
    .summary =
        "each thread counts its part of the elements, then writes their coordinates behind those of the parts before",
    .bind = [](const Problem&) -> Launcher { return list_nonzero; },
    .workspace = [](const Problem&, int threads) -> std::int64_t {
      return threads * static_cast<std::int64_t>(sizeof(std::int64_t));
    },
};

}  // namespace cermet::cpu
