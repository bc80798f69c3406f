// The first use of the instruction set, which kernels of several threads may come to together.
#include "kernel/cpu/isa.hpp"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <atomic>
#include <thread>
#include <vector>

namespace cermet {
namespace {

/// First uses from eight threads with CERMET_CPU_ISA=baseline, in a fresh process. Exits with 0 if each of them saw
/// dispatch limited from then on.
[[noreturn]] void use_first_from_threads() {
  setenv("CERMET_CPU_ISA", "baseline", 1);
  std::atomic<int> waiting{8}, using_first{8}, wrong{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      waiting.fetch_sub(1);
      while (waiting.load() > 0) std::this_thread::yield();
      if (cpu::active_isa() != cpu::Isa::baseline) wrong.fetch_add(1);
      using_first.fetch_sub(1);
      do  // whoever has it may run kernels while others still come to it
        if (hwy::SupportedTargets() & (HWY_AVX2 | HWY_AVX3)) wrong.fetch_add(1);
      while (using_first.load() > 0);
    });
  for (std::thread& thread : threads) thread.join();
  std::exit(wrong.load() == 0 ? 0 : 1);
}

TEST(IsaDeathTest, ThreadsThatUseItFirstTogetherAgree) {
  if (cpu::supported_isas().front() != cpu::Isa::baseline) GTEST_SKIP() << "this build has one instruction set";
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  for (int run = 0; run < 20; ++run) EXPECT_EXIT(use_first_from_threads(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace cermet
