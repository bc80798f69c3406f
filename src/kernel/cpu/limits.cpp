#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/limits.cpp"
#include "kernel/cpu/limits.hpp"

#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/buffer.hpp"
#include "kernel/cpu/isa.hpp"
#include "kernel/cpu/vec-inl.hpp"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {

/// 12 independent chains: more than latency times throughput of any core, and they fit in 16 registers. They start at different values: the compiler
/// would make one of equal chains.
float f32_chains(std::int64_t steps) {
  const auto from = [](float value) HWY_ATTR { return hn::Set(FloatTag(), value); };
  const auto one = from(1);
  Floats a = from(1), b = from(2), c = from(3), d = from(4), e = from(5), f = from(6), g = from(7), h = from(8), i = from(9), j = from(10), k = from(11),
         l = from(12);
  for (std::int64_t s = 0; s < steps; ++s) {
    a = hn::MulAdd(a, one, one), b = hn::MulAdd(b, one, one), c = hn::MulAdd(c, one, one), d = hn::MulAdd(d, one, one);
    e = hn::MulAdd(e, one, one), f = hn::MulAdd(f, one, one), g = hn::MulAdd(g, one, one), h = hn::MulAdd(h, one, one);
    i = hn::MulAdd(i, one, one), j = hn::MulAdd(j, one, one), k = hn::MulAdd(k, one, one), l = hn::MulAdd(l, one, one);
  }
  const auto left = hn::Add(hn::Add(hn::Add(a, b), hn::Add(c, d)), hn::Add(e, f)), right = hn::Add(hn::Add(hn::Add(g, h), hn::Add(i, j)), hn::Add(k, l));
  return sum_lanes(hn::Add(left, right));
}

/// Floating operations of one step of f32_chains.
double f32_step() { return 12.0 * 2.0 * static_cast<double>(lanes()); }

/// Reads `count` floats, a multiple of 4096, with a prefetch one page ahead.
float read_floats(const float* p, std::int64_t count) {
  auto a = hn::Zero(FloatTag()), b = a, c = a, d = a;
  const auto step = static_cast<std::int64_t>(lanes());
  for (std::int64_t i = 0; i < count; i += 4 * step) {
    for (std::int64_t line = i; line < i + 4 * step; line += 16) hwy::Prefetch(p + line + 1024);
    a = hn::Or(a, hn::Load(FloatTag(), p + i)), b = hn::Or(b, hn::Load(FloatTag(), p + i + step));
    c = hn::Or(c, hn::Load(FloatTag(), p + i + 2 * step)), d = hn::Or(d, hn::Load(FloatTag(), p + i + 3 * step));
  }
  return sum_lanes(hn::Or(hn::Or(a, b), hn::Or(c, d)));
}

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cermet::cpu {
namespace {

HWY_EXPORT(f32_chains);
HWY_EXPORT(f32_step);
HWY_EXPORT(read_floats);

#if defined(__x86_64__)

__attribute__((target("avx512f,avx512bf16"))) float bf16_chains(std::int64_t steps) {
  __m512 sums[12];
  for (int i = 0; i < 12; ++i) sums[i] = _mm512_set1_ps(static_cast<float>(i));
  __m512bh pair = reinterpret_cast<__m512bh>(_mm512_set1_epi32(0x3f803f80));
  asm("" : "+v"(pair));
  for (std::int64_t s = 0; s < steps; ++s)
#pragma GCC unroll 12
    for (__m512& sum : sums) sum = _mm512_dpbf16_ps(sum, pair, pair);
  __m512 all = _mm512_setzero_ps();
  for (const __m512& sum : sums) all = _mm512_add_ps(all, sum);
  return _mm512_reduce_add_ps(all);
}

__attribute__((target("avx512f,avx512vnni"))) float int8_chains(std::int64_t steps) {
  __m512i sums[12];
  for (int i = 0; i < 12; ++i) sums[i] = _mm512_set1_epi32(i);
  __m512i quad = _mm512_set1_epi32(0x01010101);
  asm("" : "+v"(quad));
  for (std::int64_t s = 0; s < steps; ++s)
#pragma GCC unroll 12
    for (__m512i& sum : sums) sum = _mm512_dpbusd_epi32(sum, quad, quad);
  __m512i all = _mm512_setzero_si512();
  for (const __m512i& sum : sums) all = _mm512_add_epi32(all, sum);
  return static_cast<float>(_mm512_reduce_add_epi32(all));
}
#endif

double seconds_now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// Keeps a result from being optimised away.
void consume(float value) { asm volatile("" : : "r"(&value) : "memory"); }

/// Best rate of `work(thread)`, which does `amount` on every thread together, over `seconds` and at least five runs.
double best_rate(ThreadPool& pool, double seconds, double amount, FunctionRef<float(int thread)> work) {
  double best = 0;
  int runs = 0;
  for (const double start = seconds_now(); runs < 5 || seconds_now() - start < seconds; ++runs) {
    const double begin = seconds_now();
    pool.run([&](int thread) { consume(work(thread)); });
    best = std::max(best, amount / (seconds_now() - begin));
  }
  return best;
}

double read_rate(ThreadPool& pool, double seconds, std::int64_t most_bytes) {
  const std::int64_t free_bytes = static_cast<std::int64_t>(sysconf(_SC_AVPHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  const std::int64_t wanted = std::clamp<std::int64_t>(free_bytes / 8, 1 << 22, most_bytes);
  const std::int64_t share = wanted / pool.size() / (1 << 16) * (1 << 16);  // bytes of one thread, whole pages
  const AlignedBuffer memory(share * pool.size());
  auto* const floats = reinterpret_cast<float*>(memory.data());
  // Each thread touches what it will read: the pages then exist, near it.
  pool.run([&](int thread) { std::memset(memory.data() + share * thread, 1, static_cast<std::size_t>(share)); });
  const std::int64_t count = share / static_cast<std::int64_t>(sizeof(float));
  return best_rate(pool, seconds, static_cast<double>(share) * pool.size(),
                   [&](int thread) { return HWY_DYNAMIC_DISPATCH(read_floats)(floats + count * thread, count); });
}

}  // namespace

Limits measure_limits(ThreadPool& pool, double seconds, std::int64_t most_bytes) {
  constexpr std::int64_t steps = 100000;  // about 0.2 ms
  const Isa isa = active_isa();
  const double threads = pool.size();
  Limits limits;
  limits.f32_flops = best_rate(pool, seconds, threads * steps * HWY_DYNAMIC_DISPATCH(f32_step)(), [](int) { return HWY_DYNAMIC_DISPATCH(f32_chains)(steps); });
#if defined(__x86_64__)
  if (isa >= Isa::avx512_vnni) limits.int8_ops = best_rate(pool, seconds, threads * steps * 12 * 128, [](int) { return int8_chains(steps); });
  if (isa >= Isa::avx512_bf16) limits.bf16_flops = best_rate(pool, seconds, threads * steps * 12 * 64, [](int) { return bf16_chains(steps); });
#endif
  limits.read_bytes_per_second = read_rate(pool, seconds, most_bytes);
  return limits;
}

double bf16_ratio() {
#if defined(__x86_64__)
  static const double ratio = [] {
    constexpr std::int64_t steps = 2000;  // some microseconds, which few interruptions hit
    double f32 = 1, bf16 = 1;             // seconds, the least of many runs in turn
    for (int run = 0; run < 10; ++run) {
      const double begin = seconds_now();
      consume(HWY_DYNAMIC_DISPATCH(f32_chains)(steps));
      const double middle = seconds_now();
      consume(bf16_chains(steps));
      f32 = std::min(f32, middle - begin);
      bf16 = std::min(bf16, seconds_now() - middle);
    }
    return 64 * 12 / bf16 / (HWY_DYNAMIC_DISPATCH(f32_step)() / f32);
  }();
  return ratio;
#else
  return 0;
#endif
}

}  // namespace cermet::cpu
#endif
