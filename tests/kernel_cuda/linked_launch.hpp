// Kernels' launches as instances of one linked launch, on a GPU or, without running, on the null device.
#pragma once

#include <set>

#include "jit/link.hpp"
#include "tests/kernel_cuda/device_case.hpp"

namespace cermet {

/// An operator's case, planned but not launched: operands in device memory, and the launch of its only program.
class PlannedCase {
 public:
  /// `x`: a result of another that takes the place of operand 0.
  PlannedCase(OpKind op, std::string_view kernel_name, const Case& recipe, Device& device, Stream& stream,
              ProgramStore* store, const TensorView* x = nullptr, const Config& config = {})
      : data_(make_case_data(definition(op), recipe)), device_(&device), stream_(&stream) {
    const auto kernels = cuda::kernels_of(op);
    const auto found = std::ranges::find(kernels, kernel_name, &Kernel::name);
    require(found != kernels.end(), "no kernel {}", kernel_name);
    const Kernel& kernel = **found;
    data_.problem.target = device.target();
    if (const Decline decline = kernel.declines(data_.problem))
      fail(Status::internal, "{} declines: {}", kernel_name, *decline);
    programs = kernel.programs(data_.problem, config);
    load(store);
    const DeviceQueue queue{&device, &stream, store};
    std::vector<TensorView> inputs;
    for (std::size_t i = 0; i < data_.inputs.size(); ++i) {
      CERMET_ASSERT(kernel.weight_layout(data_.problem, i) == nullptr);
      memory_.emplace_back(data_.inputs[i], queue);
      inputs.push_back(i == 0 && x ? *x : memory_.back().view);
    }
    std::vector<TensorView> outputs;
    for (const TensorType& type : data_.problem.outputs) {
      results_.emplace_back(type, dense_dims_of(data_.problem), 8, queue);
      outputs.push_back(results_.back().on_device());
    }
    const std::int64_t bytes = kernel.workspace(data_.problem, config, 1);
    if (bytes > 0) workspace_ = device.allocate(bytes);
    if (bytes > 0) stream.fill(workspace_.data(), 0, bytes);
    const cuda::TaskQueue tasks(device, plan, loaded_);
    kernel.bind(data_.problem, config)({inputs, outputs, workspace_.data(), nullptr, &tasks});
    require(plan.launches().size() == 1, "{}: expected one launch, found {}", kernel_name, plan.launches().size());
  }

  std::vector<cuda::Program> programs;
  Plan plan;

  const Launch& launch() const { return plan.launches().front(); }
  const cuda::Program& program() const { return programs[launch().program]; }
  TensorView result() const { return results_.front().on_device(); }
  /// Results with the pattern that they had at first.
  void clear() {
    for (DeviceResult& result : results_)
      stream_->fill(result.device.memory.data(), DeviceResult::pattern, result.device.memory.size());
  }
  /// All bytes of all results, once the stream has come to them.
  std::vector<std::byte> bytes() {
    std::vector<std::byte> all;
    for (DeviceResult& result : results_) {
      std::vector<std::byte> part(static_cast<std::size_t>(result.device.memory.size()));
      stream_->download(part.data(), result.device.memory.data(), result.device.memory.size());
      stream_->synchronize();
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }

 private:
  void load(ProgramStore* store) {
    if (store) {
      loaded_ = store->get(programs);
      return;
    }
    for (const cuda::Program& program : programs) {
      LoadedFunction function;
      function.blocks_per_multiprocessor = program.min_blocks;
      loaded_.push_back({std::move(function), program.threads, program.cluster, program.shared_bytes,
                         program.alternates, program.fallback});
    }
  }

  CaseData data_;
  Device* device_;
  Stream* stream_;
  std::vector<cuda::LoadedProgram> loaded_;
  std::vector<DeviceTensor> memory_;
  std::vector<DeviceResult> results_;
  DeviceBuffer workspace_;
};

}  // namespace cermet
