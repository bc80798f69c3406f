// Decoding attention whose values are the first columns of the keys, in the same memory: multi-head latent attention.
#include <algorithm>

#include "base/checked.hpp"
#include "op/schema/operator.hpp"
#include "select/bound_op.hpp"
#include "tests/kernel_cuda/device_case.hpp"
#include "tests/kernel_cuda/operands.hpp"

namespace cermet {
namespace {

constexpr std::int64_t head_size = 576, value_size = 512, heads = 16, page = 16;

/// Two sequences with these contexts, whose pages take turns, and `starts` of as many queries as they say.
Case paged_case(DType t, const std::vector<double>& contexts, const std::vector<double>& starts) {
  const std::int64_t pages = div_up(static_cast<std::int64_t>(std::ranges::max(contexts)), page);
  std::vector<double> tables;
  for (int sequence = 0; sequence < 2; ++sequence)
    for (std::int64_t i = 0; i < pages; ++i) tables.push_back(static_cast<double>(2 * (pages - 1 - i) + sequence));
  return {
      "latent",
      {real(t, {static_cast<std::int64_t>(starts.back()), heads, head_size}), real(t, {2 * pages, 1, page, head_size}),
       real(t, {2 * pages, 1, page, value_size}), CaseOperand{{DType::i32, {2, pages}}, values(std::move(tables))},
       CaseOperand{{DType::i32, {2}}, values(contexts)}, CaseOperand{{DType::i32, {3}}, values(starts)}},
      {{"return_lse", true}}};
}

/// A sequence whose queries are its last tokens.
Case ragged_case(DType t, std::int64_t tokens, std::int64_t keys) {
  return {"latent_ragged",
          {real(t, {tokens, heads, head_size}), real(t, {keys, 1, head_size}), real(t, {keys, 1, value_size})},
          {{"return_lse", true}}};
}

std::string run_with_values_in_keys(OpKind op, std::string_view name, const Case& recipe, TestDevice& gpu) {
  constexpr std::size_t keys = 1, values = 2;
  CaseData data = make_case_data(definition(op), recipe);
  data.problem.target = gpu.device->target();
  for (std::int64_t row = 0; row < data.inputs[keys].elements() / head_size; ++row)
    for (std::int64_t d = 0; d < value_size; ++d)
      copy_element(data.inputs[keys], row * head_size + d, data.inputs[values], row * value_size + d);
  const auto kernels = cuda::kernels_of(op);
  const Kernel& kernel = **std::ranges::find(kernels, name, &Kernel::name);
  const DeviceQueue queue = gpu.queue();
  std::vector<DeviceTensor> operands;
  std::vector<TensorView> inputs, outputs, found;
  for (const TensorView& input : data.inputs) inputs.push_back(operands.emplace_back(input, queue).view);
  TensorView& shared = inputs[values];
  const int columns = shared.shape.rank() - 1;
  shared = inputs[keys];
  shared.shape[columns] = value_size;
  std::vector<DeviceResult> results;
  for (const TensorType& type : data.problem.outputs) results.emplace_back(type, 1, 0, queue);
  for (const DeviceResult& result : results) outputs.push_back(result.on_device());
  // The stream knows no other program, and refuses its launch.
  const std::vector<cuda::Program> programs = kernel.programs(data.problem);
  const auto place = std::ranges::find_if(
      programs, [](const cuda::Program& p) { return p.task.find(".values_in_keys = true") != std::string::npos; });
  if (place == programs.end()) return "no program for values in the keys";
  const auto at = static_cast<std::size_t>(place - programs.begin());
  RecordingStream recording(*gpu.stream, {programs[at]}, {gpu.programs->get(programs)[at]});
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
    for (const std::vector<double>& starts : {std::vector<double>{0, 1, 2}, {0, 3, 4}})
      EXPECT_EQ(run_with_values_in_keys(OpKind::incre_flash_attention, "attention.decode_shared",
                                        paged_case(t, {70, 33}, starts), gpu),
                "")
          << name_of(t) << ", " << starts.back() << " queries";
}

TEST(LatentValues, AreReadOnceWithTheKeysOfManyQueries) {
  TestDevice& gpu = TestDevice::get();
  if (!gpu.device) GTEST_SKIP() << gpu.reason;
  if (gpu.device->target()->compute_capability != 90) GTEST_SKIP() << "needs compute capability 9.0";
  for (const DType t : {DType::bf16, DType::f16}) {
    EXPECT_EQ(run_with_values_in_keys(OpKind::incre_flash_attention, "attention.prefill_paged_wide",
                                      paged_case(t, {330, 70}, {0, 14, 23}), gpu),
              "")
        << name_of(t);
    EXPECT_EQ(
        run_with_values_in_keys(OpKind::flash_attention, "attention.prefill_ragged_wide", ragged_case(t, 11, 200), gpu),
        "")
        << name_of(t);
  }
}

}  // namespace
}  // namespace cermet
