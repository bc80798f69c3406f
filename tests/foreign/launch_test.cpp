// Launches of kernels from outside: the record in a plan, parameters byte for byte, what falls back, and what a
// compiler is given.
#include "foreign/launch.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "device/device.hpp"
#include "foreign/fallback.hpp"
#include "jit/jit.hpp"
#include "kernel/cuda/task.hpp"
#include "op/schema/operator.hpp"
#include "tests/foreign/manifests.hpp"
#include "tests/jit/fake_toolchain.hpp"

namespace cermet::test {
namespace {

/// rms_norm of x [2, 3, 64] on a null device, bound to a kernel from outside.
struct LaunchCase {
  std::unique_ptr<Device> device = make_null_device(90);
  TestKernel made;
  Region region;
  std::vector<cuda::Program> programs;
  std::vector<cuda::LoadedProgram> loaded;
  std::vector<char> handles = std::vector<char>(16);
  Plan plan;

  explicit LaunchCase(const std::string& manifest = good_manifest, bool weight = true, DType dtype = DType::bf16,
                      bool falls_back = true)
      : made(manifest, small_ptx, falls_back) {
    std::vector<std::optional<TensorType>> inputs{TensorType{dtype, {2, 3, 64}}, std::nullopt};
    if (weight) inputs[1] = TensorType{dtype, {64}};
    Problem problem = make_problem(*find_operator("rms_norm"), std::move(inputs), {{"eps", 0.5}});
    problem.target = device->target();
    region = problem;
  }

  /// The launches for these operands.
  std::span<const Launch> launch(const Config& config, std::vector<TensorView> inputs,
                                 std::vector<TensorView> outputs) {
    programs = made.kernel.programs(region, config);
    loaded.clear();
    for (std::size_t i = 0; i < programs.size(); ++i)
      loaded.push_back({.loaded = {.owner = {}, .function = {&handles[i]}, .blocks_per_multiprocessor = 1},
                        .threads = programs[i].threads,
                        .cluster = 1,
                        .fallback = programs[i].fallback});
    plan.clear();
    const cuda::TaskQueue queue(*device, plan, loaded);
    made.kernel.bind(region, config)({inputs, outputs, reinterpret_cast<std::byte*>(0x7000), nullptr, &queue});
    return std::as_const(plan).launches();
  }
};

TensorView view(std::uintptr_t address, DType dtype, const Shape& shape) {
  return {reinterpret_cast<void*>(address), dtype, shape};
}
TensorView rows(std::uintptr_t address, DType dtype, std::int64_t step) {
  return {reinterpret_cast<void*>(address), dtype, {2, 3, 64}, {3 * step, step, 1}};
}

template <class T>
T at(std::span<const std::byte> bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

const Config two_rows{{"block", 128}, {"rows", 2}};

TEST(ForeignLaunch, ParametersAreLaidOutAsCompilersDo) {
  LaunchCase c;
  const auto launches = c.launch(two_rows, {rows(0x1000, DType::bf16, 72), view(0x2000, DType::bf16, {64})},
                                 {view(0x3000, DType::bf16, {2, 3, 64})});
  ASSERT_EQ(launches.size(), 1u);
  const Launch& launch = launches[0];
  EXPECT_EQ(launch.kind, Launch::Kind::function);
  EXPECT_FALSE(launch.is_linkable());
  EXPECT_FALSE(launch.fallback);
  EXPECT_EQ(launch.function.handle, &c.handles[0]);
  const LaunchShape& shape = launch.shape;
  EXPECT_EQ(std::tie(shape.blocks, shape.blocks_y, shape.blocks_z), std::tuple(3u, 2u, 1u));
  EXPECT_EQ(std::tie(shape.threads, shape.threads_y, shape.threads_z), std::tuple(128u, 2u, 1u));
  EXPECT_EQ(shape.shared_bytes, 128u);
  EXPECT_FALSE(shape.overlaps_previous);
  const std::span<const std::uint32_t> offsets = c.plan.offsets(launch);
  EXPECT_EQ(std::vector(offsets.begin(), offsets.end()),
            (std::vector<std::uint32_t>{0, 8, 16, 24, 32, 40, 48, 56, 64, 72, 80}));
  const std::span<const std::byte> bytes = c.plan.parameters(launch);
  ASSERT_EQ(bytes.size(), 88u);
  EXPECT_EQ(at<std::uint64_t>(bytes, 0), 0x1000u);
  EXPECT_EQ(at<std::int32_t>(bytes, 8), 6);
  EXPECT_EQ(at<std::int32_t>(bytes, 12), 0) << "between parameters there are zeros";
  EXPECT_EQ(at<std::uint64_t>(bytes, 16), 0x2000u);
  EXPECT_EQ(at<float>(bytes, 24), 0.25f);
  EXPECT_EQ(at<std::uint64_t>(bytes, 32), 0x3000u);
  EXPECT_EQ(at<std::int64_t>(bytes, 40), 72);
  EXPECT_EQ(at<std::uint32_t>(bytes, 48), 1u);
  EXPECT_EQ(at<std::uint64_t>(bytes, 56), 0x7000u);
  EXPECT_EQ(at<std::int32_t>(bytes, 64), 4);
  EXPECT_EQ(at<double>(bytes, 72), 1.0 / 64);
  EXPECT_EQ(at<std::uint64_t>(bytes, 80), 64u);
}

TEST(ForeignLaunch, AMissingOperandIsNull) {
  LaunchCase c(good_manifest, false);
  const auto launches =
      c.launch(two_rows, {view(0x1000, DType::bf16, {2, 3, 64}), {}}, {view(0x3000, DType::bf16, {2, 3, 64})});
  ASSERT_EQ(launches.size(), 1u);
  const std::span<const std::byte> bytes = c.plan.parameters(launches[0]);
  EXPECT_EQ(at<std::uint64_t>(bytes, 16), 0u);
  EXPECT_EQ(at<std::int64_t>(bytes, 40), 64);
  EXPECT_EQ(at<std::uint32_t>(bytes, 48), 0u);
}

/// A stream that keeps what it is asked to launch.
TEST(ForeignLaunch, EachParameterIsPassedByItsAddress) {
  class Recorder final : public Stream {
   public:
    std::vector<std::uint64_t> first, third;
    void launch(const LaunchShape&, DeviceFunction, void** parameters) override {
      first.push_back(*static_cast<std::uint64_t*>(parameters[0]));
      third.push_back(*static_cast<std::uint64_t*>(parameters[2]));
    }
    void upload(void*, const void*, std::int64_t) override {}
    void download(void*, const void*, std::int64_t) override {}
    void copy(void*, const void*, std::int64_t) override {}
    void fill(void*, unsigned char, std::int64_t) override {}
    void synchronize() override {}
    void multiply(const MatrixProduct&) override {}
    void begin_capture() override {}
    std::unique_ptr<CapturedGraph> end_capture() override { return nullptr; }
    void abandon_capture() noexcept override {}
    void replay(const CapturedGraph&) override {}
    std::unique_ptr<DeviceEvent> make_event() override { return nullptr; }
    void record(DeviceEvent&) override {}
    void wait(const DeviceEvent&) override {}
    void synchronize_event(const DeviceEvent&) override {}
    double seconds_between(const DeviceEvent&, const DeviceEvent&) override { return 0; }
  };
  LaunchCase c;
  c.launch({}, {view(0x1000, DType::bf16, {2, 3, 64}), view(0x2000, DType::bf16, {64})},
           {view(0x3000, DType::bf16, {2, 3, 64})});
  Recorder recorder;
  c.plan.enqueue(recorder);
  EXPECT_EQ(recorder.first, std::vector<std::uint64_t>{0x1000});
  EXPECT_EQ(recorder.third, std::vector<std::uint64_t>{0x2000});
}

TEST(ForeignLaunch, OperandsThatTheCodeDoesNotTakeFallBack) {
  struct Row {
    TensorView x, y;
    bool falls_back;
  };
  const TensorView dense = view(0x1000, DType::bf16, {2, 3, 64}), y = view(0x3000, DType::bf16, {2, 3, 64});
  const Row list[]{
      {dense, y, false},
      {view(0x1008, DType::bf16, {2, 3, 64}), y, true},  // not at a multiple of 16 bytes
      {rows(0x1000, DType::bf16, 72), y, false},         // rows 144 bytes apart
      {rows(0x1000, DType::bf16, 68), y, true},          // rows 136 bytes apart
      {{reinterpret_cast<void*>(0x1000), DType::bf16, {2, 3, 64}, {1000, 72, 1}}, y, true},  // rows unevenly apart
      {dense, rows(0x3000, DType::bf16, 72), true},                                          // y must be dense
  };
  for (const Row& row : list) {
    LaunchCase c;
    const auto launches = c.launch({}, {row.x, view(0x2000, DType::bf16, {64})}, {row.y});
    ASSERT_GE(launches.size(), 1u);
    EXPECT_EQ(launches[0].kind, row.falls_back ? Launch::Kind::program : Launch::Kind::function);
    EXPECT_EQ(c.plan.fallbacks() > 0, row.falls_back);
    if (row.falls_back) {
      EXPECT_NE(launches[0].program, 0u) << "one of our own kernel's";
    }
  }
}

TEST(ForeignLaunch, WithoutAFallbackTheErrorNamesTheOperand) {
  LaunchCase c(good_manifest, true, DType::bf16, false);
  expect_error(Status::unsupported,
               {"test.rms_norm: x: expected evenly strided elements at an address that is a multiple of 16 bytes, "
                "found strides"},
               [&] {
                 c.launch({}, {view(0x1008, DType::bf16, {2, 3, 64}), view(0x2000, DType::bf16, {64})},
                          {view(0x3000, DType::bf16, {2, 3, 64})});
               });
}

TEST(ForeignLaunch, NothingIsLaunchedWithoutBlocks) {
  LaunchCase c;
  const auto launches = c.launch({}, {view(0x1000, DType::bf16, {0, 3, 64}), view(0x2000, DType::bf16, {64})},
                                 {view(0x3000, DType::bf16, {0, 3, 64})});
  EXPECT_TRUE(launches.empty());
}

TEST(ForeignLaunch, GridsThatNoGpuHasAreErrors) {
  LaunchCase c(changed("[\"ceil_div(M, rows)\", 2]", "[1, \"M * 20000\"]"));
  expect_error(Status::invalid_argument, {"test.rms_norm: grid[1]: expected 0 to 65535 blocks, found 120000"}, [&] {
    c.launch({}, {view(0x1000, DType::bf16, {2, 3, 64}), view(0x2000, DType::bf16, {64})},
             {view(0x3000, DType::bf16, {2, 3, 64})});
  });
}

TEST(ForeignLaunch, ProgramsHaveTheCodeAndThoseOfTheFallback) {
  LaunchCase c;
  const std::vector<cuda::Program> programs = c.made.kernel.programs(c.region, two_rows);
  ASSERT_GE(programs.size(), 2u);
  ASSERT_TRUE(programs[0].foreign.has_value());
  EXPECT_EQ(programs[0].foreign->form, cuda::ForeignCode::Form::ptx);
  EXPECT_EQ(programs[0].foreign->entry, "k");
  EXPECT_EQ(*programs[0].foreign->code, small_ptx);
  EXPECT_EQ(programs[0].foreign->parameter_bytes, (std::vector<std::uint32_t>{8, 4, 8, 4, 8, 8, 4, 8, 4, 8, 8}));
  EXPECT_EQ(programs[0].threads, 256);
  EXPECT_EQ(short_name(programs[0]), "test.rms_norm");
  for (std::size_t i = 1; i < programs.size(); ++i) EXPECT_TRUE(programs[i].fallback && !programs[i].foreign);
  EXPECT_EQ(programs, c.made.kernel.programs(c.region, two_rows)) << "loaded once";
  EXPECT_GE(c.made.kernel.workspace(c.region, two_rows, 1), 24);
}

TEST(ForeignLaunch, ImagesNeedNoCompiler) {
  LaunchCase c(good_manifest, true, DType::bf16, false);
  const std::vector<cuda::Program> programs = c.made.kernel.programs(c.region, two_rows);
  const FakeToolchain tools;
  const std::vector<jit::Image> images = jit::build(programs, "sm_90a", nullptr, {.toolchain = &tools});
  ASSERT_EQ(images.size(), 1u);
  EXPECT_EQ(tools.compiled(), 0);
  EXPECT_EQ(std::string_view(reinterpret_cast<const char*>(images[0].bytes.data())), small_ptx)
      << "with the zero that PTX ends in";
}

TEST(ForeignLaunch, SourcesAreCompiledWithTheirMacros) {
  std::string manifest =
      changed(R"("kind": "ptx", "file": "k.ptx")", R"("kind": "cuda", "file": "k.cu", "options": ["-lineinfo"],
    "defines": {"ROWS": "rows * 2", "WIDTH": "N", "T": {"type": "T", "texts": {"f32": "float", "bf16": "unsigned short"}}})");
  const TestKernel made(manifest, "extern \"C\" __global__ void k();", false);
  const auto device = make_null_device(90);
  Problem problem =
      make_problem(*find_operator("rms_norm"), {TensorType{DType::bf16, {5, 64}}, TensorType{DType::bf16, {64}}}, {});
  problem.target = device->target();
  const std::vector<cuda::Program> programs = made.kernel.programs(problem, two_rows);
  ASSERT_EQ(programs.size(), 1u);
  EXPECT_EQ(programs[0].foreign->options, std::vector<std::string>{"-lineinfo"});
  const std::string macros = "#define ROWS 4\n#define WIDTH 64\n#define T unsigned short\n#line 1 \"k.cu\"\n";
  EXPECT_EQ(programs[0].prelude, macros);
  const FakeToolchain tools;
  jit::DiskCache none({}, 0);
  jit::build(programs, "sm_90a", nullptr, {.toolchain = &tools, .cache = &none});
  EXPECT_EQ(tools.compiled(), 1);
  EXPECT_EQ(tools.last().source, macros + "extern \"C\" __global__ void k();");
  EXPECT_NE(std::ranges::find(tools.last().options, "-lineinfo"), tools.last().options.end());
  EXPECT_NE(std::ranges::find(tools.last().options, "-arch=sm_90a"), tools.last().options.end());
}

TEST(ForeignLaunch, MacrosMustBeKnownBeforeTheFirstRun) {
  const Symbol t("T");
  const std::string manifest =
      changed(R"("kind": "ptx", "file": "k.ptx")", R"("kind": "cuda", "file": "k.cu", "defines": {"ROWS": "M"})");
  const TestKernel made(manifest, "k");
  const auto device = make_null_device(90);
  Problem problem = make_problem(*find_operator("rms_norm"),
                                 {TensorType{DType::bf16, {Dim(t), 64}}, TensorType{DType::bf16, {64}}}, {});
  problem.target = device->target();
  problem.maximum.set(t, 9);
  EXPECT_EQ(made.kernel.declines(problem), "ROWS (M) is not known before the first run: from 0 to 9");
}

}  // namespace
}  // namespace cermet::test
