#include "kernel/cpu/isa.hpp"

#include <hwy/targets.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <vector>

#include "base/env.hpp"
#include "base/error.hpp"
#include "kernel/cpu/amx.hpp"

namespace cermet::cpu {
namespace {

constexpr std::array<std::string_view, 6> names{"baseline", "avx2", "avx512", "avx512_vnni", "avx512_bf16", "amx"};

#if defined(CERMET_CPU_LEVEL)
/// What a build for one instruction set (CERMET_CPU_TARGETS=native) can run: that one, and what is found at run time
/// above it.
std::vector<Isa> detect() {
#if CERMET_CPU_LEVEL == 4
  std::vector<Isa> found{Isa::avx512};
  const bool is_there = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (__builtin_cpu_supports("avx512vnni")) found.push_back(Isa::avx512_vnni);
#else
  std::vector<Isa> found{Isa::avx2};
  const bool is_there = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif
  if (!is_there)
    fail(Status::unsupported,
         "CPU kernels: expected a machine with {}, for which alone this build was made, found one without; "
         "configure with CERMET_CPU_TARGETS=all for builds that move between machines",
         name_of(found.front()));
  if (found.back() == Isa::avx512_vnni && __builtin_cpu_supports("avx512bf16")) found.push_back(Isa::avx512_bf16);
  if (found.back() == Isa::avx512_bf16 && !amx_missing()) found.push_back(Isa::amx);
  return found;
}
#else
std::vector<Isa> detect() {
  std::vector<Isa> found{Isa::baseline};
#if defined(__x86_64__)
  const auto targets = hwy::SupportedTargets();
  if (targets & HWY_AVX2) found.push_back(Isa::avx2);
  if (targets & HWY_AVX3) found.push_back(Isa::avx512);
  if ((targets & HWY_AVX3) && __builtin_cpu_supports("avx512vnni")) found.push_back(Isa::avx512_vnni);
  if (found.back() == Isa::avx512_vnni && __builtin_cpu_supports("avx512bf16")) found.push_back(Isa::avx512_bf16);
  if (found.back() == Isa::avx512_bf16 && !amx_missing()) found.push_back(Isa::amx);
#endif
  return found;
}
#endif

std::atomic<int>& current() {
  static std::atomic<int> isa{-1};
  return isa;
}

Isa chosen_by_environment() {
  const std::string& wanted = env::value(env::Name::CERMET_CPU_ISA);
  if (wanted == "best") return supported_isas().back();
  for (const Isa isa : supported_isas())
    if (name_of(isa) == wanted) return isa;
  std::vector<std::string_view> known{"best"};
  for (const Isa isa : supported_isas()) known.push_back(name_of(isa));
  fail(Status::invalid_argument,
       "environment variable CERMET_CPU_ISA: expected one of {} on this machine and of this build, found '{}'",
       fmt::join(known, ", "), wanted);
}

}  // namespace

std::string_view name_of(Isa isa) { return names[static_cast<std::size_t>(isa)]; }

std::span<const Isa> supported_isas() {
  static const std::vector<Isa> isas = detect();
  return isas;
}

void force_isa(Isa isa) {
  const auto supported = supported_isas();
  CERMET_ASSERT(std::find(supported.begin(), supported.end(), isa) != supported.end());
#if !defined(CERMET_CPU_LEVEL)
  hwy::SetSupportedTargetsForTest(0);  // 0: detect again
  auto targets = hwy::SupportedTargets();
  if (isa < Isa::avx512) targets &= ~((HWY_AVX2 << 1) - 1) | HWY_AVX2;  // lower bits are higher x86 targets
  if (isa < Isa::avx2) targets &= ~((HWY_SSSE3 << 1) - 1);
  hwy::SetSupportedTargetsForTest(targets);
  hwy::GetChosenTarget().Update(targets);
#endif
  current().store(static_cast<int>(isa));
}

Isa active_isa() {
  // Once, whichever threads come first: detection resets what dispatch reads.
  [[maybe_unused]] static const bool chosen = [] {
    if (current().load() < 0) force_isa(chosen_by_environment());
    return true;
  }();
  return static_cast<Isa>(current().load());
}

}  // namespace cermet::cpu
