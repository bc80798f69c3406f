#include "select/device_case_run.hpp"

#include <algorithm>
#include <cstring>

#include "device/plan.hpp"
#include "op/schema/operator.hpp"
#include "op/schema/reference.hpp"

namespace cermet {
namespace {

constexpr std::int64_t guard_bytes = 64 << 10;

}  // namespace

DeviceTensor::DeviceTensor(const TensorView& host, const DeviceQueue& queue, std::int64_t around)
    : view(host), margin(around) {
  if (!host.present) return;
  const std::int64_t bytes = byte_range(host).bytes;
  memory = queue.device->allocate(bytes + 2 * margin);
  if (margin > 0) queue.stream->fill(memory.data(), CaseResult::pattern, memory.size());
  view.data = memory.data() + (memory.data() ? margin : 0);
  if (bytes > 0) queue.stream->upload(view.data, host.data, bytes);
  queue.stream->synchronize();  // the host memory may go
}

bool DeviceTensor::is_untouched(const DeviceQueue& queue, const TensorView* before) const {
  if (margin == 0 || !view.present) return true;
  const std::int64_t bytes = memory.size() - 2 * margin;
  std::vector<std::byte> found(static_cast<std::size_t>(memory.size()));
  queue.stream->download(found.data(), memory.data(), memory.size());
  queue.stream->synchronize();
  const auto is_pattern = [](std::byte b) { return b == std::byte{CaseResult::pattern}; };
  return std::all_of(found.begin(), found.begin() + margin, is_pattern) &&
         std::all_of(found.end() - margin, found.end(), is_pattern) &&
         (!before || std::memcmp(found.data() + margin, before->data, static_cast<std::size_t>(bytes)) == 0);
}

DeviceResult::DeviceResult(const TensorType& type, int dense_dims, std::int64_t padding, const DeviceQueue& queue,
                           std::int64_t around)
    : CaseResult(type, dense_dims, padding), device(memory.view, queue, around) {}

TensorView DeviceResult::on_device() const {
  TensorView seen = view;
  seen.data = device.view.data;
  return seen;
}
void DeviceResult::upload(const DeviceQueue& queue) const {
  queue.stream->upload(device.view.data, memory.memory.data(), memory.memory.size());
}
void DeviceResult::download(const DeviceQueue& queue) const {
  queue.stream->download(memory.memory.data(), device.view.data, memory.memory.size());
}

std::string run_case_on_device(const CaseData& data, const Expected& expected, const Kernel& kernel,
                               const DeviceQueue& queue, ThreadPool& pool, const CaseRunOptions& options,
                               const Problem* bound, Stream* stream, std::int64_t* fallbacks) {
  BoundOp op(bound ? *bound : data.problem, Choice(kernel, options.config), pool, queue);
  const std::int64_t around = options.guarded ? guard_bytes : 0;
  std::vector<DeviceTensor> operands;
  std::vector<TensorView> inputs;
  for (std::size_t i = 0; i < data.inputs.size(); ++i) {
    if (data.problem.is_constant(i)) op.prepack(i, data.inputs[i]);
    operands.emplace_back(data.inputs[i], queue, around);
    inputs.push_back(operands.back().view);
    for (std::size_t other = 0; other < i; ++other)  // a view of the same memory stays one
      if (inputs[i].present && data.inputs[i].data == data.inputs[other].data) inputs[i].data = inputs[other].data;
  }
  std::vector<DeviceResult> results;
  for (std::size_t o = 0; o < data.problem.outputs.size(); ++o) {
    const int shared = shared_operand(data.problem, options, o);
    results.emplace_back(data.problem.outputs[o], dense_dims_of(data.problem), shared >= 0 ? 0 : options.padding, queue,
                         around);
    if (shared < 0) continue;
    const auto input = static_cast<std::size_t>(shared);
    for (std::int64_t e = 0; e < data.inputs[input].elements(); ++e)
      copy_element(data.inputs[input], e, results[o].view, e);
    results[o].upload(queue);
    inputs[input] = results[o].on_device();
  }
  std::vector<TensorView> outputs, found;
  for (const DeviceResult& result : results) outputs.push_back(result.on_device());
  op.run(inputs, outputs, nullptr, stream);
  if (fallbacks) *fallbacks = op.fallbacks();
  for (DeviceResult& result : results) {
    result.download(queue);
    found.push_back(result.view);
  }
  queue.stream->synchronize();
  for (const DeviceResult& result : results) {
    if (!result.padding_untouched()) return "wrote between the rows of a strided result";
    if (!result.device.is_untouched(queue, nullptr))
      return "expected nothing written outside of a result, found a change";
  }
  for (std::size_t i = 0; i < operands.size(); ++i)
    if (!operands[i].is_untouched(queue, &data.inputs[i]))
      return fmt::format("expected operand {} ({}) and what is around it as they were, found a change", i,
                         data.problem.input_name(i));
  return compare(data.problem, expected, found);
}

}  // namespace cermet
