#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/limits.cpp"
#include "kernel/cpu/limits.hpp"

#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>

#include "base/buffer.hpp"
#include "kernel/cpu/amx.hpp"
#include "kernel/cpu/amx_instructions.hpp"
#include "kernel/cpu/isa.hpp"
#include "kernel/cpu/measure_limits.hpp"
#include "kernel/cpu/vec-inl.hpp"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {

/// 12 independent chains: more than latency times throughput of any core, and they fit in 16 registers. They start at
/// different values: the compiler would make one of equal chains.
float f32_chains(std::int64_t steps) {
  const auto from = [](float value) HWY_ATTR { return hn::Set(FloatTag(), value); };
  const auto one = from(1);
  Floats a = from(1), b = from(2), c = from(3), d = from(4), e = from(5), f = from(6), g = from(7), h = from(8),
         i = from(9), j = from(10), k = from(11), l = from(12);
  for (std::int64_t s = 0; s < steps; ++s) {
    a = hn::MulAdd(a, one, one), b = hn::MulAdd(b, one, one), c = hn::MulAdd(c, one, one), d = hn::MulAdd(d, one, one);
    e = hn::MulAdd(e, one, one), f = hn::MulAdd(f, one, one), g = hn::MulAdd(g, one, one), h = hn::MulAdd(h, one, one);
    i = hn::MulAdd(i, one, one), j = hn::MulAdd(j, one, one), k = hn::MulAdd(k, one, one), l = hn::MulAdd(l, one, one);
  }
  const auto left = hn::Add(hn::Add(hn::Add(a, b), hn::Add(c, d)), hn::Add(e, f)),
             right = hn::Add(hn::Add(hn::Add(g, h), hn::Add(i, j)), hn::Add(k, l));
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
  __m512 total = _mm512_setzero_ps();
  for (const __m512& sum : sums) total = _mm512_add_ps(total, sum);
  return _mm512_reduce_add_ps(total);
}

__attribute__((target("avx512f,avx512vnni"))) float int8_chains(std::int64_t steps) {
  __m512i sums[12];
  for (int i = 0; i < 12; ++i) sums[i] = _mm512_set1_epi32(i);
  __m512i quad = _mm512_set1_epi32(0x01010101);
  asm("" : "+v"(quad));
  for (std::int64_t s = 0; s < steps; ++s)
#pragma GCC unroll 12
    for (__m512i& sum : sums) sum = _mm512_dpbusd_epi32(sum, quad, quad);
  __m512i total = _mm512_setzero_si512();
  for (const __m512i& sum : sums) total = _mm512_add_epi32(total, sum);
  return static_cast<float>(_mm512_reduce_add_epi32(total));
}

/// Operands of two by two tiles. Tiles use more power the more bits change: zeros run a third faster than numbers do,
/// so these have every sign and mantissa, as bf16 between 1 and 2 in size and as int8.
struct AmxOperands {
  alignas(64) std::array<std::uint16_t, 4 * amx_rows * amx_row_bytes / 2> values;
  AmxOperands() {
    std::uint32_t state = 1;
    for (std::uint16_t& value : values) {
      state = state * 1664525 + 1013904223;
      value = static_cast<std::uint16_t>(0x3f80 | (state >> 16 & 0x807f));
    }
  }
};

/// Four chains of products of tiles, as many as products of two by two tiles have.
template <class Products>
float amx_chains(std::int64_t steps) {
  static const AmxOperands operands;
  const auto* const at = reinterpret_cast<const char*>(operands.values.data());
  constexpr int tile = amx_rows * amx_row_bytes;
  const AmxTiles tiles;
  zero_tile<0>(), zero_tile<1>(), zero_tile<2>(), zero_tile<3>();
  load_tile<4>(at, amx_row_bytes), load_tile<5>(at + tile, amx_row_bytes);
  load_tile<6>(at + 2 * tile, amx_row_bytes), load_tile<7>(at + 3 * tile, amx_row_bytes);
  for (std::int64_t s = 0; s < steps; ++s) {
    Products::template multiply<0, 4, 6>(), Products::template multiply<1, 4, 7>();
    Products::template multiply<2, 5, 6>(), Products::template multiply<3, 5, 7>();
  }
  return 0;
}

/// Operations of one step of amx_chains, by bytes of an element.
constexpr double amx_step(int bytes) { return 4.0 * 2.0 * amx_rows * amx_rows * amx_row_bytes / bytes; }
#endif

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Keeps a result from being optimised away.
void consume(float value) { asm volatile("" : : "r"(&value) : "memory"); }

/// How long a rate is measured, and what is called between two runs.
struct Patience {
  double seconds;
  void (*between)();
};

/// Best rate of `work(thread)`, which does `amount` on every thread together, over as many seconds and at least five
/// runs.
double best_rate(ThreadPool& pool, const Patience& patience, double amount, FunctionRef<float(int thread)> work) {
  double best = 0;
  int runs = 0;
  for (const double start = seconds_now(); runs < 5 || seconds_now() - start < patience.seconds; ++runs) {
    if (patience.between) patience.between();
    const double begin = seconds_now();
    pool.run([&](int thread) { consume(work(thread)); });
    best = std::max(best, amount / (seconds_now() - begin));
  }
  return best;
}

double read_rate(ThreadPool& pool, const Patience& patience, std::int64_t most_bytes) {
  const std::int64_t free_bytes = static_cast<std::int64_t>(sysconf(_SC_AVPHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  const std::int64_t wanted = std::clamp<std::int64_t>(free_bytes / 8, 1 << 22, most_bytes);
  const std::int64_t share = wanted / pool.size() / (1 << 16) * (1 << 16);  // bytes of one thread, whole pages
  const AlignedBuffer memory(share * pool.size());
  auto* const floats = reinterpret_cast<float*>(memory.data());
  // Each thread touches what it will read: the pages then exist, near it.
  pool.run([&](int thread) { std::memset(memory.data() + share * thread, 1, static_cast<std::size_t>(share)); });
  const std::int64_t count = share / static_cast<std::int64_t>(sizeof(float));
  return best_rate(pool, patience, static_cast<double>(share) * pool.size(),
                   [&](int thread) { return HWY_DYNAMIC_DISPATCH(read_floats)(floats + count * thread, count); });
}

Limits measured(ThreadPool& pool, const Patience& patience, std::int64_t most_bytes) {
  constexpr std::int64_t steps = 100000;  // about 0.2 ms
  const Isa isa = active_isa();
  const double threads = pool.size();
  Limits limits;
  limits.f32_flops = best_rate(pool, patience, threads * steps * HWY_DYNAMIC_DISPATCH(f32_step)(),
                               [](int) { return HWY_DYNAMIC_DISPATCH(f32_chains)(steps); });
#if defined(__x86_64__)
  if (isa >= Isa::avx512_vnni)
    limits.int8_ops = best_rate(pool, patience, threads * steps * 12 * 128, [](int) { return int8_chains(steps); });
  if (isa >= Isa::avx512_bf16)
    limits.bf16_flops = best_rate(pool, patience, threads * steps * 12 * 64, [](int) { return bf16_chains(steps); });
  if (isa >= Isa::amx) {
    constexpr std::int64_t tile_steps = steps / 20;
    limits.amx_bf16_flops = best_rate(pool, patience, threads * tile_steps * amx_step(2),
                                      [](int) { return amx_chains<AmxBf16>(tile_steps); });
    limits.amx_int8_ops = best_rate(pool, patience, threads * tile_steps * amx_step(1),
                                    [](int) { return amx_chains<AmxInt8>(tile_steps); });
  }
#endif
  limits.read_bytes_per_second = read_rate(pool, patience, most_bytes);
  return limits;
}

constexpr std::int64_t usual_bytes = std::int64_t{1} << 30;

}  // namespace

Limits measure_limits(ThreadPool& pool, double seconds, std::int64_t most_bytes) {
  return measured(pool, {seconds, nullptr}, most_bytes);
}
Limits measure_limits(ThreadPool& pool, double seconds, void (*between)()) {
  return measured(pool, {seconds, between}, usual_bytes);
}

#if defined(__x86_64__)
namespace {

/// A chain of operations that some instruction does, how many a step of it has, and how many are measured: some
/// microseconds of them.
struct Chain {
  float (*run)(std::int64_t steps);
  double operations, measured = 4e6;
};

/// Of tiles, whose configuration alone takes as long as the usual number of operations.
constexpr double measured_by_tiles = 64e6;

/// The rate of one chain over that of another on this thread: of the least times of many runs in turn, some
/// microseconds each, which few interruptions hit.
double ratio_of(const Chain& fast, const Chain& slow) {
  const auto steps = [](const Chain& chain) { return static_cast<std::int64_t>(chain.measured / chain.operations); };
  double fast_seconds = 1, slow_seconds = 1;
  for (int run = 0; run < 10; ++run) {
    const double begin = seconds_now();
    consume(slow.run(steps(slow)));
    const double middle = seconds_now();
    consume(fast.run(steps(fast)));
    slow_seconds = std::min(slow_seconds, middle - begin);
    fast_seconds = std::min(fast_seconds, seconds_now() - middle);
  }
  return slow_seconds / slow.measured * fast.measured / fast_seconds;
}

Chain f32_chain() {
  return {[](std::int64_t steps) { return HWY_DYNAMIC_DISPATCH(f32_chains)(steps); }, HWY_DYNAMIC_DISPATCH(f32_step)()};
}

}  // namespace

double bf16_ratio() {
  static const double ratio = ratio_of({bf16_chains, 64 * 12}, f32_chain());
  return ratio;
}

double amx_bf16_ratio() {
  static const double ratio = ratio_of({amx_chains<AmxBf16>, amx_step(2), measured_by_tiles}, f32_chain());
  return ratio;
}

double amx_int8_ratio() {
  static const double ratio = ratio_of({amx_chains<AmxInt8>, amx_step(1), measured_by_tiles}, {int8_chains, 128 * 12});
  return ratio;
}

#else

double bf16_ratio() { return 0; }
double amx_bf16_ratio() { return 0; }
double amx_int8_ratio() { return 0; }

#endif

}  // namespace cermet::cpu
#endif
