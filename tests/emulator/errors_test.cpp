// What a program does wrong is an error that names the kernel, the thread and the line.
#include "tests/emulator/ptx_case.hpp"

namespace cermet::emulator {
namespace {

struct Wrong {
  const char* what;
  const char* body;
  const char* error;  ///< is part of the message
  std::uint32_t threads = 32;
};

TEST(Errors, NameWhatIsWrong) {
  const Wrong list[] = {
      {"out of bounds", "ld.global.u32 %r0, [%rd0+4];", "expected 4 bytes inside an allocation"},
      {"no address", "mov.u64 %rd1, 0; st.global.u32 [%rd1], 0;", "found none"},
      {"misaligned", "ld.global.u16 %h1, [%rd0+1];", "multiple of 2"},
      {"misaligned vector", "mov.u32 %r2, smem; ld.shared.v2.u32 {%r0, %r3}, [%r2+4];", "multiple of 8"},
      {"behind shared memory", "mov.u32 %r2, smem; ld.shared.u32 %r0, [%r2+4096];", "shared address"},
      {"before shared memory", "ld.shared.u32 %r0, [0];", "shared address"},
      {"other thread's place", "setp.eq.u32 %p1, %r1, 5; @%p1 ld.global.u32 %r0, [%rd0+8];", "block 0 thread 5"},
      {"half of a warp", "setp.lt.u32 %p1, %r1, 16; @%p1 bar.sync 1, 32; @!%p1 bar.sync 2, 32;", "deadlock"},
      {"a barrier in two places",
       "setp.lt.u32 %p1, %r1, 16; @%p1 bra other; bar.sync 1, 32; bra end; other: bar.sync 1, 32; end:",
       "expected all threads of the warp"},
      {"too few threads", "bar.sync 1, 64;", "deadlock"},
      {"two counts", "setp.lt.u32 %p1, %r1, 32; @%p1 bar.sync 1, 64; @!%p1 bar.sync 1, 96;", "expected 64 threads", 64},
      {"lanes apart",
       "setp.lt.u32 %p1, %r1, 16; @%p1 shfl.sync.idx.b32 %r0, %r1, 0, 31, -1;\n"
       "@!%p1 shfl.sync.idx.b32 %r0, %r1, 0, 31, -1;",
       "deadlock"},
      {"a lane outside of its mask", "shfl.sync.idx.b32 %r0, %r1, 0, 31, 1;", "expected a mask with the lane"},
      {"no mbarrier", "mov.u32 %r2, smem; mbarrier.arrive.shared::cta.b64 _, [%r2];", "initialised mbarrier"},
      {"too many arrivals",
       "mov.u32 %r2, smem; mbarrier.init.shared::cta.b64 [%r2], 2; mbarrier.arrive.shared::cta.b64 _, [%r2], 3;",
       "at most 2 arrivals"},
      {"a phase that does not end",
       "mov.u32 %r2, smem; mbarrier.init.shared::cta.b64 [%r2], 2;\n"
       "again: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r2], 0; @!%p1 bra again;",
       "deadlock"},
      {"an endless loop", "again: bra again;", "deadlock"},
      {"no tensor map",
       "mov.u32 %r2, smem; add.u64 %rd0, %rd0, 4; "
       "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
       "[%r2], [%rd0, {0, 0}], [%r2];",
       "tensor map"},
      {"half of a warpgroup", "wgmma.fence.sync.aligned;", "warpgroup"},
      {"trap", "trap;", "trap"},
      {"a line of the source", "\n.loc 1 7 3, function_name f, inlined_at 1 20 5\ntrap;",
       "(kernel.cuh:7 in kernel.cuh:20)"},
      {"another instruction", "tcgen05.wait::ld.sync.aligned;", "does not know"},
      {"another modifier", "add.cc.u32 %r0, 1, 2;", "modifier 'cc'"},
  };
  for (const Wrong& w : list) {
    const std::string error = PtxCase{.body = w.body, .threads = w.threads, .input = {1}}.error();
    EXPECT_NE(error.find(w.error), std::string::npos) << w.what << ": " << error;
    EXPECT_TRUE(error.starts_with("test: ")) << error;
  }
}

/// Whatever order threads come in.
TEST(Errors, RacesAreAccessesThatNothingOrders) {
  const auto error = [](const std::string& between, const std::string& use, const std::string& end = "") {
    return PtxCase{.body =
                       "mov.u32 %r2, smem; mov.u32 %r3, %tid.x; and.b32 %r3, %r3, 31; shl.b32 %r3, %r3, 2;\n"
                       "add.u32 %r4, %r2, %r3; setp.lt.u32 %p1, %r1, 32; @%p1 st.shared.u32 [%r4], 7;\n" +
                       between + use + end,
                   .threads = 64,
                   .input = {1, 2, 3, 4, 5, 6, 7, 8},
                   .mode = {.races = true}}
        .error();
  };
  const std::string
      barrier = "bar.sync 0;\n",
      fence = "fence.proxy.async.shared::cta;\n", load = "ld.shared.u32 %r0, [%r4];\n",
      store = "@!%p1 st.shared.u32 [%r4], 8;\n",
      bulk = "setp.eq.u32 %p2, %r1, 32; @%p2 cp.async.bulk.global.shared::cta.bulk_group [%rd0], [%r2], 16;\n";
  EXPECT_EQ(error(barrier, load), "");
  EXPECT_NE(error("", load).find("reads what warp 0 writes"), std::string::npos);
  EXPECT_NE(error("", store).find("writes what warp 0 writes"), std::string::npos);
  EXPECT_EQ(error(barrier, "@%p1 " + load, barrier + store), "");
  EXPECT_NE(error(barrier, "@%p1 " + load, store).find("nothing orders them"), std::string::npos);
  EXPECT_EQ(error("@!%p1 st.shared.u16 [%r2+130], 1; @%p1 st.shared.u16 [%r2+128], 1;", ""), "") << "other bytes";
  EXPECT_EQ(error(fence + barrier, bulk), "");
  EXPECT_EQ(error(barrier + fence, bulk), "");
  EXPECT_NE(error(barrier, bulk).find("without a fence.proxy.async"), std::string::npos);
}

/// An accumulator belongs to the product until it is waited for.
TEST(Errors, AccumulatorsThatAreWrittenBeforeTheWaitAreSeenInTheLateMode) {
  const std::string before = R"(
    mov.u64 %rd1, 0x4000004000010040;
    mov.f32 %f0, 0f00000000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0;
    wgmma.fence.sync.aligned;
    { .reg .pred p; setp.ne.b32 p, 1, 0;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0, %f1, %f2, %f3}, %rd1, %rd1, p, 1, 1, 0, 0; }
    wgmma.commit_group.sync.aligned;
    )",
                    touch = "mov.f32 %f2, 0f3F800000;\n", wait = "wgmma.wait_group.sync.aligned 0; mov.u32 %r0, 1;";
  const auto error = [](const std::string& body, bool late) {
    return PtxCase{.body = body, .threads = 128, .mode = {.late = late}, .shared_bytes = 16384}.error();
  };
  EXPECT_EQ(error(before + wait, true), "");
  EXPECT_EQ(error(before + touch + wait, false), "");
  EXPECT_NE(error(before + touch + wait, true).find("wrote to an accumulator"), std::string::npos);
}

}  // namespace
}  // namespace cermet::emulator
