// A case's operands in device memory: uploaded with their strides, results filled with a pattern that must survive around them.
#pragma once

#include <gtest/gtest.h>

#include <cstring>

#include "device/cuda/plugin.hpp"
#include "kernel/cuda/kernels.hpp"
#include "kernel/decline.hpp"
#include "op/case_data.hpp"
#include "op/operator.hpp"
#include "op/reference.hpp"
#include "select/bound_op.hpp"
#include "tests/kernel_cuda/recorded_launches.hpp"

namespace cermet {

/// One GPU for all tests of the program; null, with a reason, where there is none.
struct TestDevice {
  std::string reason = cuda::unavailable_reason();
  std::unique_ptr<Device> device = reason.empty() ? make_device("cuda") : nullptr;
  std::unique_ptr<Stream> stream = device ? device->make_stream() : nullptr;
  std::optional<ProgramStore> programs;
  ThreadPool pool{1};

  TestDevice() {
    if (device) programs.emplace(*device);
  }
  DeviceQueue queue() { return {device.get(), stream.get(), &*programs}; }
  static TestDevice& get() {
    static TestDevice one;
    return one;
  }
};

/// Bytes from the first to the last element of a view.
inline std::int64_t extent_bytes(const TensorView& view) {
  if (view.elements() == 0) return 0;
  std::int64_t last = 0;
  for (int axis = 0; axis < view.shape.rank(); ++axis) last += (view.shape[axis] - 1) * view.strides[axis];
  return (last + 1) * static_cast<std::int64_t>(size_of(view.dtype));
}

/// A host tensor's copy on the device with the same strides.
struct DeviceTensor {
  DeviceBuffer memory;
  TensorView view;

  DeviceTensor() = default;
  DeviceTensor(const TensorView& host, const DeviceQueue& queue) : view(host) {
    if (!host.present) return;
    memory = queue.device->allocate(extent_bytes(host));
    view.data = memory.data();
    queue.stream->upload(memory.data(), host.data, memory.size());
    queue.stream->synchronize();  // the host memory may go
  }
};

/// A result: rows padded, filled with a pattern.
struct DeviceResult {
  static constexpr unsigned char pattern = 0xa5;
  OwnedTensor host;     ///< with padding
  TensorView view;      ///< in host memory
  DeviceTensor device;  ///< the same on the device
  int dense;

  DeviceResult(const TensorType& type, int dense_dims, std::int64_t padding, const DeviceQueue& queue) : dense(std::min(dense_dims, type.rank())) {
    const Shape shape = bind(type.dims, {});
    Shape padded = shape;
    if (dense < shape.rank() || dense == 1) padded[shape.rank() - dense] += padding;
    host = OwnedTensor(type.dtype, padded);
    if (host.memory.size() > 0) std::memset(host.memory.data(), pattern, static_cast<std::size_t>(host.memory.size()));
    view = TensorView(host.memory.data(), type.dtype, shape, dense_strides(padded));
    device = DeviceTensor(host.view, queue);
  }
  TensorView on_device() const {
    TensorView seen = view;
    seen.data = device.memory.data();
    return seen;
  }
  void upload(const DeviceQueue& queue) { queue.stream->upload(device.memory.data(), host.memory.data(), host.memory.size()); }
  void download(const DeviceQueue& queue) { queue.stream->download(host.memory.data(), device.memory.data(), host.memory.size()); }
  bool padding_untouched() const {
    const Rows allocated(host.view, dense), used(view, dense);
    const auto bytes = static_cast<std::int64_t>(size_of(view.dtype));
    for (std::int64_t r = 0; r < allocated.count(); ++r)
      for (std::int64_t i = used.length() * bytes; i < allocated.length() * bytes; ++i)
        if (static_cast<unsigned char>(allocated.row(r)[i]) != pattern) return false;
    return true;
  }
};

/// Kernels of an operator without those in CERMET_DISABLE_KERNELS.
inline std::vector<const Kernel*> enabled_kernels_of(OpKind op) {
  std::vector<const Kernel*> list;
  for (const Kernel* kernel : cuda::kernels_of(op))
    if (!is_disabled(kernel->name)) list.push_back(kernel);
  return list;
}

/// Runs one CUDA kernel on a case and compares with the reference; rows of results are `padding` elements apart. Returns "" or what is wrong, and in
/// `launches` what ran. The kernel is bound to the case's problem, or to `bound`, of which the case is a run.
inline std::string run_on_device(const CaseData& data, const Expected& expected, const Kernel& kernel, std::int64_t padding, const DeviceQueue& queue,
                                 ThreadPool& pool, std::vector<RecordedLaunch>* launches = nullptr, const Problem* bound = nullptr) {
  const Problem& problem = bound ? *bound : data.problem;
  BoundOp op(problem, kernel, pool, queue);
  const std::vector<cuda::Program> programs = kernel.programs(problem);
  RecordingStream recording(*queue.stream, programs, queue.programs->get(programs));
  std::vector<DeviceTensor> memory;
  std::vector<TensorView> inputs;
  for (std::size_t i = 0; i < data.inputs.size(); ++i) {
    if (data.problem.is_constant(i)) op.prepack(i, data.inputs[i]);
    memory.emplace_back(data.inputs[i], queue);
    inputs.push_back(memory.back().view);
  }
  const auto& aliases = definition(data.problem).aliases;
  std::vector<DeviceResult> results;
  for (std::size_t o = 0; o < data.problem.outputs.size(); ++o) {
    const bool shared = o < aliases.size() && aliases[o] >= 0;
    results.emplace_back(data.problem.outputs[o], dense_dims_of(data.problem), shared ? 0 : padding, queue);
    if (!shared) continue;
    const auto input = static_cast<std::size_t>(aliases[o]);
    for (std::int64_t e = 0; e < data.inputs[input].elements(); ++e) copy_element(data.inputs[input], e, results[o].view, e);
    results[o].upload(queue);
    inputs[input] = results[o].on_device();
  }
  std::vector<TensorView> outputs;
  for (const DeviceResult& result : results) outputs.push_back(result.on_device());
  op.run(inputs, outputs, nullptr, &recording);
  if (launches) *launches = recording.launches;
  const auto fell_back = std::ranges::count_if(recording.launches, &RecordedLaunch::fallback);
  if (op.fallbacks() != fell_back) return fmt::format("counted {} fallbacks, launched {}", op.fallbacks(), fell_back);
  std::vector<TensorView> found;
  for (DeviceResult& result : results) {
    result.download(queue);
    found.push_back(result.view);
  }
  queue.stream->synchronize();
  for (const DeviceResult& result : results)
    if (!result.padding_untouched()) return "wrote between the rows of a strided result";
  return compare(data.problem, expected, found);
}

}  // namespace cermet
