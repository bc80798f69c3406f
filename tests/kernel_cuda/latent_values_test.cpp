// Decoding attention whose values are the first columns of the keys, in the same memory: multi-head latent attention.
#include "op/schema/operator.hpp"
#include "select/bound_op.hpp"
#include "tests/kernel_cuda/device_case.hpp"
#include "tests/kernel_cuda/operands.hpp"

namespace cermet {
namespace {

constexpr std::int64_t head_size = 576, value_size = 512, page = 16, pages = 5;

/// Two sequences, with `starts` of as many queries as they say.
Case latent_case(std::string name, DType t, const std::vector<double>& starts) {
  return {std::move(name),
          {real(t, {static_cast<std::int64_t>(starts.back()), 16, head_size}), real(t, {2 * pages, 1, page, head_size}),
           real(t, {2 * pages, 1, page, value_size}),
           CaseOperand{{DType::i32, {2, pages}}, values({3, 1, 4, 0, 9, 2, 6, 5, 8, 7})},
           CaseOperand{{DType::i32, {2}}, values({70, 33})}, CaseOperand{{DType::i32, {3}}, values(starts)}},
          {{"return_lse", true}}};
}

std::string run_with_values_in_keys(CaseData& data, TestDevice& gpu) {
  constexpr std::size_t keys = 1, values = 2;
  for (std::int64_t row = 0; row < 2 * pages * page; ++row)
    for (std::int64_t d = 0; d < value_size; ++d)
      copy_element(data.inputs[keys], row * head_size + d, data.inputs[values], row * value_size + d);
  const auto kernels = cuda::kernels_of(OpKind::incre_flash_attention);
  const Kernel& kernel = **std::ranges::find(kernels, "attention.decode_shared", &Kernel::name);
  const DeviceQueue queue = gpu.queue();
  std::vector<DeviceTensor> operands;
  std::vector<TensorView> inputs, outputs, found;
  for (const TensorView& input : data.inputs) inputs.push_back(operands.emplace_back(input, queue).view);
  TensorView& shared = inputs[values];
  shared = inputs[keys];
  shared.shape[3] = value_size;
  std::vector<DeviceResult> results;
  for (const TensorType& type : data.problem.outputs) results.emplace_back(type, 1, 0, queue);
  for (const DeviceResult& result : results) outputs.push_back(result.on_device());
  // The stream knows no other program, and refuses its launch.
  const std::vector<cuda::Program> programs = kernel.programs(data.problem);
  EXPECT_NE(programs.at(1).task.find(".values_in_keys = true"), std::string::npos);
  RecordingStream recording(*gpu.stream, {programs[1]}, {gpu.programs->get(programs)[1]});
  BoundOp(data.problem, Choice(kernel, {}), gpu.pool, queue).run(inputs, outputs, nullptr, &recording);
  EXPECT_EQ(recording.launches.size(), 1u);
  for (DeviceResult& result : results) {
    result.download(queue);
    found.push_back(result.view);
  }
  queue.stream->synchronize();
  return compare(data.problem, run_reference(data), found);
}

TEST(LatentValues, AreReadOnceWithTheKeys) {
  TestDevice& gpu = TestDevice::get();
  if (!gpu.device) GTEST_SKIP() << gpu.reason;
  for (const DType t : {DType::bf16, DType::f16})
    for (const std::vector<double>& starts : {std::vector<double>{0, 1, 2}, {0, 3, 4}}) {
      CaseData data = make_case_data(definition(OpKind::incre_flash_attention), latent_case("latent", t, starts));
      data.problem.target = gpu.device->target();
      EXPECT_EQ(run_with_values_in_keys(data, gpu), "") << name_of(t) << ", " << starts.back() << " queries";
    }
}

}  // namespace
}  // namespace cermet
