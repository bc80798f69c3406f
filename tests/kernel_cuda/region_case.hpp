// Regions of several operators on a GPU, beside the references of their operators one after the other.
#pragma once

#include "tests/kernel_cuda/device_case.hpp"
#include "tests/support/region.hpp"

namespace cermet {

/// Each of these kernels takes the region and launches its own programs, which needs no GPU.
inline void expect_taken(const Region& region, const std::vector<std::string_view>& names) {
  const auto kernels = cuda::kernels_of(region.problem().op->kind);
  for (const std::string_view name : names) {
    const auto kernel = std::ranges::find(kernels, name, &Kernel::name);
    ASSERT_NE(kernel, kernels.end()) << name;
    EXPECT_EQ(decline_of(**kernel, region).value_or("takes it"), "takes it") << name;
    NullLaunches null(region, **kernel);
    EXPECT_FALSE(null.launch(null.inputs(), null.outputs()).empty()) << name;
    EXPECT_EQ(null.fallbacks, 0) << name;
  }
}

/// An operand that lies in `memory`, or, where the kernel wants it in a layout of its own, that form of it, which
/// `memory` then holds.
inline TensorView packed_for(const Kernel& kernel, const Region& region, std::size_t operand, const TensorView& on_host,
                             DeviceTensor& memory, TestDevice& gpu) {
  const WeightLayout* const layout = region.is_constant(operand) ? kernel.weight_layout(region, operand) : nullptr;
  if (!layout) return memory.view;
  const DeviceQueue queue = gpu.queue();
  AlignedBuffer packed(packed_bytes(*layout, on_host.type()));
  pack_weight(*layout, on_host, packed.data(), gpu.pool);
  memory.memory = queue.device->allocate(packed.size());
  queue.stream->upload(memory.memory.data(), packed.data(), packed.size());
  queue.stream->synchronize();
  TensorView view = memory.view;
  view.data = memory.memory.data();
  return view;
}

/// Runs a kernel on a region with these operands, by operand of the region, in host memory. Results are by result of
/// the region, their rows `padding` elements apart.
inline std::vector<DeviceResult> run_region(const Region& region, const std::vector<TensorView>& operands,
                                            const Kernel& kernel, std::int64_t padding, TestDevice& gpu) {
  const DeviceQueue queue = gpu.queue();
  std::vector<DeviceTensor> memory;
  std::vector<TensorView> inputs, outputs;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    memory.emplace_back(operands[i], queue);
    inputs.push_back(packed_for(kernel, region, i, operands[i], memory.back(), gpu));
  }
  std::vector<DeviceResult> results;
  for (std::size_t r = 0; r < region.results.size(); ++r)
    results.emplace_back(region.result_type(r), 1, padding, queue);
  for (const DeviceResult& result : results) outputs.push_back(result.on_device());
  const DeviceBuffer workspace = queue.device->allocate(kernel.workspace(region, 1));
  const std::vector<cuda::LoadedProgram> programs = queue.programs->get(kernel.programs(region));
  Plan plan;
  const cuda::TaskQueue tasks(*queue.device, plan, programs);
  kernel.bind(region)({inputs, outputs, workspace.data(), &gpu.pool, &tasks});
  plan.enqueue(*queue.stream);
  for (DeviceResult& result : results) result.download(queue);
  queue.stream->synchronize();
  return results;
}

}  // namespace cermet
