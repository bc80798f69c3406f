// Instructions one by one, with results that are known.
#include <bit>

#include "tests/emulator/ptx_case.hpp"

namespace cermet::emulator {
namespace {

std::uint32_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }

struct Known {
  const char* body;
  std::uint32_t result;
};

TEST(Instructions, ComputeWhatIsKnown) {
  const Known list[] = {
      {"add.s32 %r0, 7, -9;", static_cast<std::uint32_t>(-2)},
      {"mul.hi.u32 %r0, 0x80000001, 6;", 3},
      {"mul.hi.s32 %r0, -5, 3;", static_cast<std::uint32_t>(-1)},
      {"mul.wide.s32 %rd1, -5, 3; shr.u64 %rd1, %rd1, 8; cvt.u32.u64 %r0, %rd1;", 0xffffffff},
      {"mad.lo.s32 %r0, 5, 6, 7;", 37},
      {"div.s32 %r0, -7, 2;", static_cast<std::uint32_t>(-3)},
      {"rem.u32 %r0, 17, 5;", 2},
      {"min.s32 %r0, -1, 1;", 0xffffffff},
      {"min.u32 %r0, 0xffffffff, 1;", 1},
      {"shl.b32 %r0, 1, 40;", 0},
      {"shr.s32 %r0, -8, 40;", 0xffffffff},
      {"shf.l.wrap.b32 %r0, 0x80000000, 1, 33;", 3},
      {"shf.r.clamp.b32 %r0, 1, 2, 32;", 2},
      {"prmt.b32 %r0, 0x44332211, 0x88776655, 0x7510;", 0x88662211},
      {"prmt.b32 %r0, 0x000000f0, 0, 0x0008;", 0xf0f0f0ff},
      {"lop3.b32 %r0, 0xc, 0xa, 0x9, 0x96;", 0xc ^ 0xa ^ 0x9},
      {"bfe.s32 %r0, 0xf0, 4, 4;", 0xffffffff},
      {"bfe.u32 %r0, 0xabcd, 8, 8;", 0xab},
      {"bfi.b32 %r0, 3, 0, 4, 8;", 0x30},
      {"brev.b32 %r0, 1;", 0x80000000},
      {"clz.b32 %r0, 1;", 31},
      {"popc.b32 %r0, 0xff;", 8},
      {"bfind.u32 %r0, 256;", 8},
      {"bfind.shiftamt.u32 %r0, 1;", 31},
      {"dp4a.s32.s32 %r0, 0x01ff0203, 0x01010101, 10;", 15},
      {"setp.lt.s32 %p1|%p2, 3, 2; selp.u32 %r0, 5, 6, %p2;", 5},
      {"setp.eq.s32 %p1, 3, 3; setp.lt.and.u32 %p2, 1, 2, !%p1; selp.u32 %r0, 5, 6, %p2;", 6},
      {"setp.gtu.f32 %p1, 0f7FC00000, 0f00000000; selp.u32 %r0, 1, 0, %p1;", 1},
      {"mov.b64 %rd1, {7, 8}; mov.b64 {%r2, %r0}, %rd1;", 8},
      {"fma.rn.f32 %f1, 0f40000000, 0f40400000, 0f3F800000; mov.b32 %r0, %f1;", bits(7)},
      {"add.rz.f32 %f1, 0f3F800000, 0f33FFFFFF; mov.b32 %r0, %f1;", bits(1)},
      {"add.rp.f32 %f1, 0f3F800000, 0f00800000; mov.b32 %r0, %f1;", 0x3f800001},
      {"add.ftz.f32 %f1, 0f00000001, 0f00000000; mov.b32 %r0, %f1;", 0},
      {"add.sat.f32 %f1, 0f3F800000, 0f3F800000; mov.b32 %r0, %f1;", bits(1)},
      {"max.f32 %f1, 0f7FC00000, 0fBF800000; mov.b32 %r0, %f1;", bits(-1)},
      {"max.NaN.f32 %f1, 0f7FC00000, 0fBF800000; setp.nan.f32 %p1, %f1, %f1; selp.u32 %r0, 1, 0, %p1;", 1},
      {"ex2.approx.ftz.f32 %f1, 0f40400000; mov.b32 %r0, %f1;", bits(8)},
      {"lg2.approx.f32 %f1, 0f41000000; mov.b32 %r0, %f1;", bits(3)},
      {"rsqrt.approx.f32 %f1, 0f40800000; mov.b32 %r0, %f1;", bits(0.5)},
      {"copysign.f32 %f1, 0f80000000, 0f40000000; mov.b32 %r0, %f1;", bits(-2)},
      {"cvt.rn.bf16x2.f32 %r0, 0f3F800000, 0f40000000;", 0x3f804000},
      {"cvt.rn.f16x2.f32 %r0, 0f3F800000, 0f7F000000;", 0x3c007c00},
      {"cvt.rn.satfinite.e4m3x2.f32 %h1, 0f3F800000, 0f7F000000; cvt.u32.u16 %r0, %h1;", 0x387e},
      {"cvt.rn.satfinite.e5m2x2.f32 %h1, 0f3F800000, 0fC0000000; cvt.u32.u16 %r0, %h1;", 0x3cc0},
      {"mov.u16 %h1, 0x387e; cvt.rn.f16x2.e4m3x2 %r0, %h1;", 0x3c005f00},
      {"cvt.rni.s32.f32 %r0, 0f40200000;", 2},
      {"cvt.rzi.u32.f32 %r0, 0fC0200000;", 0},
      {"cvt.rni.sat.s8.f32 %r0, 0f43480000;", 127},
      {"cvt.s32.s8 %r0, 0x80;", 0xffffff80},
      {"cvt.rn.f32.s32 %f1, -3; mov.b32 %r0, %f1;", bits(-3)},
      {"mov.b32 %r2, 0x40003c00; fma.rn.f16x2 %r0, %r2, %r2, %r2;", 0x46004000},
      {"mov.b32 %r2, 0x40003f80; mul.rn.bf16x2 %r0, %r2, %r2;", 0x40803f80},
  };
  for (const Known& k : list) EXPECT_EQ(PtxCase{.body = k.body}.first(), k.result) << k.body;
}

TEST(Instructions, LanesExchangeValues) {
  using Values = std::vector<std::uint32_t>;
  const Values down = PtxCase{.body = "shfl.sync.down.b32 %r0|%p1, %r1, 4, 31, -1;"}.run();
  EXPECT_EQ(down[3], 7u);
  EXPECT_EQ(down[30], 30u) << "no source: its own";
  const Values segment = PtxCase{.body = "shfl.sync.bfly.b32 %r0, %r1, 1, 0x1c1f, 0xffffffff;"}.run();
  EXPECT_EQ(segment[8], 9u);
  EXPECT_EQ(PtxCase{.body = "setp.gt.u32 %p1, %r1, 29; vote.sync.ballot.b32 %r0, %p1, -1;"}.first(), 3u << 30);
  EXPECT_EQ(PtxCase{.body = "redux.sync.add.s32 %r0, %r1, 0xffffffff;"}.first(), 496u);
  const Values elected = PtxCase{.body = "elect.sync _|%p1, -1; selp.u32 %r0, 1, 0, %p1;"}.run();
  EXPECT_EQ(std::count(elected.begin(), elected.end(), 1u), 1);
}

TEST(Instructions, BranchesGoThroughScopesOfTheirOwn) {
  EXPECT_EQ((PtxCase{.body = R"(
    mov.u32 %r0, 0;
    { .reg .pred p;
    again: add.u32 %r0, %r0, 1; setp.lt.u32 p, %r0, 5; @p bra again; }
    { .reg .pred p;
    again: add.u32 %r0, %r0, 10; setp.lt.u32 p, %r0, 40; @!p bra done; bra again;
    done: })"}
                 .first()),
            45u);
}

TEST(Instructions, NamedBarriersLetProducersGoOn) {
  const PtxCase handoff{.body = R"(
    mov.u32 %r2, smem;
    setp.ge.u32 %p1, %r1, 32;
    @%p1 bra consume;
    st.shared.u32 [%r2], 42;
    bar.arrive 1, 64;
    mov.u32 %r0, 1;
    bra end;
    consume: bar.sync 1, 64;
    ld.shared.u32 %r0, [%r2];
    end:)",
                        .threads = 64};
  for (const Mode& mode : {Mode{}, Mode{true, 3}}) {
    PtxCase c = handoff;
    c.mode = mode;
    EXPECT_EQ(c.run()[40], 42u);
  }
}

/// Blocks of a cluster write to each other.
TEST(Instructions, ClustersShareTheirMemory) {
  const std::vector<std::uint32_t> found = PtxCase{.body = R"(
    mov.u32 %r2, smem;
    mov.u32 %r3, %cluster_ctarank;
    xor.b32 %r4, %r3, 1;
    mapa.shared::cluster.u32 %r5, %r2, %r4;
    add.u32 %r6, %r3, 100;
    st.shared::cluster.u32 [%r5], %r6;
    barrier.cluster.arrive.release.aligned;
    barrier.cluster.wait.acquire.aligned;
    ld.shared.u32 %r0, [%r2];)",
                                                   .blocks = 2,
                                                   .cluster = 2}
                                               .run();
  EXPECT_EQ(found[0], 101u);
  EXPECT_EQ(found[32], 100u);
}

constexpr const char* copy_and_wait = R"(
    mov.u32 %r2, smem;
    shl.b32 %r3, %r1, 4;
    add.u32 %r2, %r2, %r3;
    st.shared.u32 [%r2], 7;
    cp.async.cg.shared.global [%r2], [%rd0], 16, 4;
    cp.async.commit_group;
    )";

TEST(Instructions, AsynchronousCopiesAreLateUntilTheWait) {
  const std::vector<std::uint32_t> input{1, 2, 3, 4};
  const std::string with_wait = std::string(copy_and_wait) + "cp.async.wait_group 0; ld.shared.u32 %r0, [%r2];",
                    without = std::string(copy_and_wait) + "ld.shared.u32 %r0, [%r2];";
  EXPECT_EQ((PtxCase{.body = with_wait, .input = input, .mode = {true, {}}}.first()), 1u);
  EXPECT_EQ((PtxCase{.body = with_wait + "ld.shared.u32 %r0, [%r2+4];", .input = input}.first()), 0u) << "not read";
  EXPECT_EQ((PtxCase{.body = without, .input = input}.first()), 1u) << "at once";
  EXPECT_EQ((PtxCase{.body = without, .input = input, .mode = {true, {}}}.first()), 7u);
}

TEST(Instructions, BulkCopiesArriveAtTheirBarrier) {
  const std::string body = R"(
    mov.u32 %r2, smem;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra wait;
    mbarrier.init.shared::cta.b64 [%r2], 1;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 16;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2+16], [%rd0], 16, [%r2];
    wait: bar.sync 0;
    again: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], 0;
    @!%p2 bra again;
    ld.shared.u32 %r0, [%r2+20];)";
  std::string moved = body;
  moved.replace(moved.find("[%r2+16]"), 8, "[%r4]");
  moved.insert(moved.find("setp.ne"), "add.u32 %r4, %r2, 16;\n");
  for (const Mode& mode : {Mode{}, Mode{true, {}}, Mode{true, 5}})
    EXPECT_EQ((PtxCase{.body = moved, .threads = 64, .input = {1, 2, 3, 4}, .mode = mode}.run()[63]), 2u);
}

}  // namespace
}  // namespace cermet::emulator
