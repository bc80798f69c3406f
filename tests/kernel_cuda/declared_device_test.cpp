// What items say about their bytes, on the GPU: the first items of a launch alone, with everything that they do not
// read spoiled, write what the whole launch writes there, and nothing else.
#include <cstring>
#include <set>

#include "tests/kernel_cuda/compiled_cases.hpp"
#include "tests/kernel_cuda/poisoned.hpp"

namespace cermet {
namespace {

/// A kernel's only launch for a case, planned with operands in device memory.
class PlannedLaunchOf {
 public:
  PlannedLaunchOf(const CaseData& data, const Kernel& kernel, const DeviceQueue& queue, ThreadPool& pool)
      : data_(copy_of(data)), queue_(queue) {
    programs_ = queue.programs->get(kernel.programs(data.problem));
    std::vector<TensorView> inputs, outputs;
    for (std::size_t i = 0; i < data_.inputs.size(); ++i) {
      memory_.emplace_back(data_.inputs[i], queue);
      inputs.push_back(memory_.back().view);
      const WeightLayout* layout = data_.problem.is_constant(i) ? kernel.weight_layout(data_.problem, i) : nullptr;
      if (layout == nullptr) continue;
      AlignedBuffer packed(packed_bytes(*layout, data_.problem.input(i)));
      pack_weight(*layout, data_.inputs[i], packed.data(), pool);
      packed_.push_back(queue.device->allocate(packed.size()));
      queue.stream->upload(packed_.back().data(), packed.data(), packed.size());
      queue.stream->synchronize();
      inputs.back().data = packed_.back().data();
      is_packed_.resize(data_.inputs.size());
      is_packed_[i] = true;
    }
    is_packed_.resize(data_.inputs.size());
    const auto& aliases = definition(data_.problem).aliases;
    for (std::size_t o = 0; o < data_.problem.outputs.size(); ++o) {
      results_.emplace_back(data_.problem.outputs[o], dense_dims_of(data_.problem), 0, queue);
      outputs.push_back(results_.back().on_device());
      shares_ = shares_ || (o < aliases.size() && aliases[o] >= 0);
    }
    if (const std::int64_t bytes = kernel.workspace(data_.problem, 1); bytes > 0) {
      workspace_ = queue.device->allocate(bytes);
      queue.stream->fill(workspace_.data(), 0, bytes);
    }
    plan_.want_ranges(true);
    const cuda::TaskQueue tasks(*queue.device, plan_, programs_);
    kernel.bind(data_.problem)({inputs, outputs, workspace_.data(), nullptr, &tasks});
  }

  /// One launch whose items say what they write; results that an operand shares memory with are left out.
  bool says() const {
    return !shares_ && plan_.launches().size() == 1 && plan_.launches()[0].kind == Launch::Kind::program &&
           plan_.launches()[0].declared && shares_out(plan_.writes(plan_.launches()[0]));
  }
  std::int64_t items() const { return plan_.launches()[0].items; }
  std::int64_t cluster() const { return plan_.launches()[0].shape.cluster; }

  /// All bytes of all results after the first `count` items alone; other elements than those that they read are
  /// spoiled, where that is asked for.
  std::vector<std::vector<std::byte>> run(std::int64_t count, bool spoils) {
    const Launch& all = plan_.launches()[0];
    for (std::size_t i = 0; i < data_.inputs.size(); ++i) {
      const TensorView& on_device = memory_[i].view;
      if (!on_device.present || is_packed_[i] || extent_bytes(on_device) == 0) continue;
      const CaseData changed = copy_of(data_);
      // Ranges name device memory; elements lie alike.
      if (spoils) poison(on_device, changed.inputs[i], plan_.reads(all), 0, count);
      queue_.stream->upload(memory_[i].memory.data(), changed.inputs[i].data, extent_bytes(on_device));
      queue_.stream->synchronize();
    }
    for (DeviceResult& result : results_) result.upload(queue_);
    Launch part = all;
    part.items = static_cast<std::uint32_t>(count);
    part.shape.blocks =
        static_cast<std::uint32_t>(std::min<std::int64_t>(part.shape.blocks, round_up(count, cluster())));
    plan_.enqueue(part, *queue_.stream);
    std::vector<std::vector<std::byte>> bytes;
    for (const DeviceResult& result : results_) {
      bytes.emplace_back(static_cast<std::size_t>(result.device.memory.size()));
      queue_.stream->download(bytes.back().data(), result.device.memory.data(), result.device.memory.size());
    }
    queue_.stream->synchronize();
    return bytes;
  }

  /// "" or what the first `count` items do otherwise than they say. `whole`: what run() of all items gives.
  std::string fault_of(std::int64_t count, const std::vector<std::vector<std::byte>>& whole) {
    const auto found = run(count, true);
    for (std::size_t o = 0; o < results_.size(); ++o) {
      const ByteRange result{results_[o].device.memory.data(), results_[o].device.memory.size()};
      ByteMap own(result), others(result);
      for (std::int64_t item = 0; item < items(); ++item)
        (item < count ? own : others).mark(plan_.writes(plan_.launches()[0]), item);
      for (std::int64_t b = 0; b < result.bytes; ++b) {
        const auto at = static_cast<std::size_t>(b);
        const bool is_own = own.has(b, 1);
        if (!is_own && found[o][at] != std::byte{DeviceResult::pattern})
          return fmt::format("items below {} of {} write byte {} of result {}", count, items(), b, o);
        if (is_own && !others.has(b, 1) && found[o][at] != whole[o][at])
          return fmt::format("items below {} of {} need more than they say for byte {} of result {}", count, items(), b,
                             o);
      }
    }
    return "";
  }

 private:
  CaseData data_;
  DeviceQueue queue_;
  std::vector<cuda::LoadedProgram> programs_;
  std::vector<DeviceTensor> memory_;
  std::vector<DeviceBuffer> packed_;
  std::vector<bool> is_packed_;
  std::vector<DeviceResult> results_;
  DeviceBuffer workspace_;
  bool shares_ = false;
  Plan plan_;
};

class DeclaredOnDevice : public testing::TestWithParam<const OpDefinition*> {};

TEST_P(DeclaredOnDevice, FirstItemsDoWhatTheySay) {
  TestDevice& gpu = TestDevice::get();
  if (!gpu.device) GTEST_SKIP() << gpu.reason;
  const OpDefinition& op = *GetParam();
  const CompiledCases cases(op, gpu);
  for (std::size_t c = 0; c < cases.data.size(); ++c)
    for (const Kernel* kernel : enabled_kernels_of(op.kind)) {
      if (kernel->declines(cases.data[c].problem)) continue;
      PlannedLaunchOf launch(cases.data[c], *kernel, gpu.queue(), gpu.pool);
      if (!launch.says() || launch.items() == 0) continue;
      const auto whole = launch.run(launch.items(), false);
      const std::int64_t clusters = launch.items() / launch.cluster();
      for (const std::int64_t count : std::set<std::int64_t>{1, std::max<std::int64_t>(1, clusters / 2), clusters})
        EXPECT_EQ(launch.fault_of(count * launch.cluster(), whole), "")
            << op.name << " case " << cases.recipes[c].name << ", kernel " << kernel->name;
    }
}

std::vector<const OpDefinition*> operators() {
  std::vector<const OpDefinition*> list;
  for (const OpDefinition& op : all_operators()) list.push_back(&op);
  return list;
}

INSTANTIATE_TEST_SUITE_P(Operators, DeclaredOnDevice, testing::ValuesIn(operators()),
                         [](const auto& test) { return std::string(test.param->name); });

}  // namespace
}  // namespace cermet
