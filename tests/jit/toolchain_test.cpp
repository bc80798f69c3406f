// NVRTC and nvJitLink themselves, without a GPU.
#include <algorithm>

#include "tests/jit/architectures.hpp"
#include "tests/support/error_text.hpp"

namespace cermet::jit {
namespace {

struct Toolchain : testing::Test {
  void SetUp() override {
    if (!no_toolchain().empty()) GTEST_SKIP() << no_toolchain();
  }
  DiskCache none{"", 0};
  Options options{nullptr, &none, 2};
};

/// A kernel's program for one of its operator's cases.
cuda::Program embedding(std::size_t which) {
  const std::unique_ptr<Device> device = make_null_device(90);
  return programs_of(*cuda::kernels_of(OpKind::embedding).front(), *device->target()).at(which).program;
}

std::string_view view_of(const Image& image) {
  return {reinterpret_cast<const char*>(image.bytes.data()), image.bytes.size()};
}

TEST_F(Toolchain, NamesItsBuild) {
  const std::string version = toolchain().version();
  EXPECT_EQ(version.rfind("libnvrtc.so.13 (", 0), 0u) << version;
  const std::size_t build = version.find(" bytes, build ");
  ASSERT_NE(build, std::string::npos) << version;
  EXPECT_GE(version.size(), build + 30) << version;
}

TEST_F(Toolchain, CompilesToMachineCodeAndToPtx) {
  const Image cubin = build(std::vector{embedding(0)}, "sm_90a", nullptr, options).front();
  EXPECT_EQ(view_of(cubin).substr(1, 3), "ELF");
  EXPECT_NE(view_of(cubin).find("cermet_task"), std::string_view::npos);
  EXPECT_NE(cubin.log.find("Used "), std::string::npos) << "no registers in the report: " << cubin.log;
  const Image ptx = build(std::vector{embedding(0)}, "sm_120a", nullptr, options).front();
  EXPECT_NE(view_of(ptx).find(".target sm_90\n"), std::string_view::npos);
  EXPECT_EQ(view_of(ptx).back(), '\0');
}

TEST_F(Toolchain, ErrorsCarryFileLineAndReason) {
  cuda::Program broken = embedding(0);
  broken.task = "cermet::embedding::NoSuchTask";
  const std::string error = error_text([&] { build(std::vector{broken}, "sm_90a", nullptr, options); });
  EXPECT_NE(error.find("does not compile"), std::string::npos) << error;
  EXPECT_NE(error.find("NoSuchTask"), std::string::npos) << error;
  EXPECT_NE(error.find("generated.cu(4): error"), std::string::npos) << error;
}

/// A task in two halves, with a ring or without, that adds up what it fetched.
cuda::Program halves(bool ring, int threads) {
  const std::string_view more = ring ? ", Ring& ring" : "", stage = ring ? "ring.stage()" : "0u";
  const std::string ring_type = ring ? R"(
  struct Ring {
    uint32_t items = 0;
    template <class Team> __device__ Ring(const Params&, Team team, char*) { team.sync(); }
    template <class Team> __device__ void close(const Params&, Team team, char*) { team.sync(); }
    __device__ uint32_t stage() const { return items % 2; }
  };)"
                                     : "";
  return {.header = "kernel/cuda/device/team.cuh",
          .task = "cermet::Halves",
          .prelude = fmt::format(R"(namespace cermet {{
struct Halves {{
  struct Params {{ const float* weights; float* sums; }};{0}
  template <class Team>
  static __device__ void fetch(const Params& p, uint32_t item, Team team, char* smem{1}) {{
    reinterpret_cast<float*>(smem)[{2} * Team::size + team.rank()] = p.weights[item * Team::size + team.rank()];
  }}
  template <class Team>
  static __device__ void compute(const Params& p, uint32_t item, Team team, char* smem{1}) {{
    team.sync_part(0, Team::size);
    const float neighbour = reinterpret_cast<float*>(smem)[{2} * Team::size + (team.rank() ^ 32)];
    if (team.any(neighbour > 0)) p.sums[item * Team::size + team.rank()] += neighbour;
    {3}
  }}
}};
}}
)",
                                 ring_type, more, stage, ring ? "++ring.items;" : ""),
          .threads = threads,
          .shared_bytes = 8 * threads};
}

TEST_F(Toolchain, CompilesTasksInHalves) {
  for (const int capability : {75, 90})
    for (const bool ring : {false, true}) {
      const cuda::Program narrow = halves(ring, 64), wide = halves(ring, 128);
      const auto device = make_null_device(capability);
      for (const Image& image : build(std::vector{narrow, wide}, device->target()->architecture(), nullptr, options))
        EXPECT_EQ(image.log.find("warning"), std::string::npos) << image.log;
    }
}

}  // namespace
}  // namespace cermet::jit
