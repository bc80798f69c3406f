// Products, row kernels and attention in one linked launch: bodies of unlike width, two instances of one body, and
// instances that need the results of others.
#include "tests/kernel_cuda/linked_launch.hpp"
#include "tests/kernel_cuda/paged_case.hpp"

#include <deque>

namespace cermet {
namespace {

/// What is linked, in order. An instance that reads another's result needs all of it.
struct LinkedCases {
  std::deque<PlannedCase> planned;
  std::vector<std::vector<std::uint32_t>> needs;

  LinkedCases(Device& device, Stream& stream, ProgramStore* store) {
    constexpr DType bf16 = DType::bf16, f32 = DType::f32;
    const auto add = [&](OpKind op, std::string_view kernel, const Case& recipe, std::vector<std::uint32_t> needed = {},
                         const Config& config = {}) {
      const TensorView x = needed.empty() ? TensorView() : planned[needed.front()].result();
      planned.emplace_back(op, kernel, recipe, device, stream, store, needed.empty() ? nullptr : &x, config);
      needs.push_back(std::move(needed));
    };
    add(OpKind::rms_norm, "rowwise.rms_norm", {"norm", {real(bf16, {300, 264}), weight(bf16, {264})}});
    add(OpKind::incre_flash_attention, "attention.decode", PagedCase::decoding(36).named("shares"), {},
        {{"rows", 8}, {"blocks", 2}, {"clusters", 0}, {"whole", 0}});
    add(OpKind::linear, "gemv.linear", {"row", {real(f32, {1, 4096}), weight(bf16, {450, 4096})}});
    add(OpKind::linear, "gemm.linear.hopper", {"first", {real(bf16, {300, 264}), weight(bf16, {264, 264})}}, {0});
    add(OpKind::linear, "gemm.linear.hopper", {"second", {real(bf16, {300, 264}), weight(bf16, {264, 264})}}, {3});
    add(OpKind::rms_norm, "rowwise.rms_norm", {"after", {real(bf16, {300, 264}), weight(bf16, {264})}}, {4});
    add(OpKind::argmax, "sampling.argmax", {"argmax", {real(f32, {1, 450})}}, {2});
  }

  std::vector<cuda::Program> programs() const {
    std::vector<cuda::Program> list;
    for (const PlannedCase& one : planned) list.push_back(one.program());
    return list;
  }
  /// With at most `most` blocks for each.
  jit::LinkedTable table(const jit::LinkedImage& image, std::uint32_t most) const {
    std::vector<jit::LinkedInstance> instances;
    for (std::size_t i = 0; i < planned.size(); ++i) {
      const Launch& launch = planned[i].launch();
      instances.push_back(
          {image.bodies[i], launch.items, std::min(most, launch.shape.blocks), planned[i].plan.parameters(launch)});
      for (const std::uint32_t needed : needs[i])
        instances.back().needs.push_back({needed, planned[needed].launch().items});
    }
    return jit::linked_table(instances);
  }
};

TEST(Linked, BodiesAreLinkedOnceWithoutSpills) {
#if !defined(CERMET_HAS_CUDA_PLUGIN)
  GTEST_SKIP() << "the CUDA toolkit was not found when this was configured";
#endif
  const auto device = make_null_device(90);
  const auto stream = device->make_stream();
  const LinkedCases cases(*device, *stream, nullptr);
  const std::vector<cuda::Program> programs = cases.programs();
  const std::vector<std::string_view> expected{"rowwise/region", "attention/decode", "gemv/gemv",      "gemm/hopper",
                                               "gemm/hopper",    "rowwise/region",   "sampling/argmax"};
  for (std::size_t i = 0; i < programs.size(); ++i) EXPECT_EQ(short_name(programs[i]), expected[i]);
  jit::DiskCache none("", 0);
  const jit::LinkedImage image = jit::link_tasks(programs, *device->target(), nullptr, {nullptr, &none, 2});
  EXPECT_EQ(image.bodies, (std::vector<std::uint32_t>{0, 1, 2, 3, 3, 0, 4}));
  for (const char* complaint : {"warning", "serialized", "Function properties for cermet_task_"})
    EXPECT_EQ(image.image.log.find(complaint), std::string::npos) << image.image.log;
  EXPECT_NE(image.image.log.find(" 0 bytes spill stores, 0 bytes spill loads"), std::string::npos) << image.image.log;
  EXPECT_EQ(cases.table(image, 3).blocks, 2 * 7 + 5);
}

class LinkedOn : public testing::TestWithParam<int> {};

/// One after the other in launches of their own, and all in one, with few blocks and with many: the same bits.
TEST_P(LinkedOn, OneLaunchGivesTheBitsOfSeparateOnes) {
  TestDevice& gpu = TestDevice::get();
  if (!gpu.device) GTEST_SKIP() << gpu.reason;
  if (gpu.device->target()->compute_capability != 90) GTEST_SKIP() << "the Hopper products need compute capability 9.0";
  LinkedCases cases(*gpu.device, *gpu.stream, &*gpu.programs);
  std::vector<std::vector<std::byte>> expected;
  for (PlannedCase& one : cases.planned) one.plan.enqueue(*gpu.stream);
  for (PlannedCase& one : cases.planned) expected.push_back(one.bytes());

  const jit::LinkedImage image = jit::link_tasks(cases.programs(), *gpu.device->target());
  const LoadedFunction loaded = gpu.device->load(image.image.bytes, jit::entry_name, image.threads, image.shared_bytes);
  ASSERT_GT(loaded.blocks_per_multiprocessor, 0);
  const jit::LinkedTable table = cases.table(image, static_cast<std::uint32_t>(GetParam()));
  const auto instances = static_cast<std::uint32_t>(cases.planned.size());
  DeviceBuffer on_device = gpu.device->allocate(static_cast<std::int64_t>(table.bytes.size())),
               counters = gpu.device->allocate((instances + 1) * 4);
  gpu.stream->upload(on_device.data(), table.bytes.data(), on_device.size());
  linked::Params params{reinterpret_cast<const char*>(on_device.data()),
                        reinterpret_cast<std::uint32_t*>(counters.data()), instances};
  std::uint32_t unused = 0;
  void* arguments[]{&params, &unused};
  for (int round = 0; round < 20; ++round) {
    for (PlannedCase& one : cases.planned) one.clear();
    gpu.stream->fill(counters.data(), 0, counters.size());
    gpu.stream->launch(
        {table.blocks, static_cast<std::uint32_t>(image.threads), static_cast<std::uint32_t>(image.shared_bytes)},
        loaded.function, arguments);
    for (std::size_t i = 0; i < cases.planned.size(); ++i)
      ASSERT_EQ(cases.planned[i].bytes(), expected[i]) << "instance " << i << ", round " << round;
  }
}

INSTANTIATE_TEST_SUITE_P(Blocks, LinkedOn, testing::Values(1, 7, 1000), testing::PrintToStringParamName());

}  // namespace
}  // namespace cermet
