// The same as case_run.hpp on a GPU: a case's operands in device memory with their strides, results filled with a
// pattern that must survive around them.
#pragma once

#include <string>
#include <vector>

#include "select/case_run.hpp"

namespace cermet {

/// A host tensor's copy on the device with the same strides; with a margin, so many bytes of a pattern before and
/// after it.
struct DeviceTensor {
  DeviceBuffer memory;
  TensorView view;
  std::int64_t margin = 0;

  DeviceTensor() = default;
  DeviceTensor(const TensorView& host, const DeviceQueue& queue, std::int64_t around = 0);
  /// Whether the pattern around it is whole, and, with `before`, its bytes are these. True without a margin.
  bool is_untouched(const DeviceQueue& queue, const TensorView* before) const;
};

/// A result: rows padded, filled with a pattern.
struct DeviceResult : CaseResult {
  DeviceTensor device;

  DeviceResult(const TensorType& type, int dense_dims, std::int64_t padding, const DeviceQueue& queue,
               std::int64_t around = 0);
  TensorView on_device() const;
  void upload(const DeviceQueue& queue) const;
  void download(const DeviceQueue& queue) const;
};

/// Runs a CUDA kernel that is bound to the case's problem, or to `bound`, of which the case is a run. Its launches go
/// to `stream`, or where that is null to the queue's. Returns "" or what is wrong, and in `fallbacks` how many launches
/// took a slower program.
std::string run_case_on_device(const CaseData& data, const Expected& expected, const Kernel& kernel,
                               const DeviceQueue& queue, ThreadPool& pool, const CaseRunOptions& options = {},
                               const Problem* bound = nullptr, Stream* stream = nullptr,
                               std::int64_t* fallbacks = nullptr);

}  // namespace cermet
