// Cases on the GPU that tests share, with a record of what was launched.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "device/cuda/plugin.hpp"
#include "kernel/cuda/kernels.hpp"
#include "kernel/decline.hpp"
#include "op/schema/operator.hpp"
#include "op/schema/reference.hpp"
#include "select/device_case_run.hpp"
#include "tests/emulator/emulated_device.hpp"
#include "tests/kernel_cuda/recorded_launches.hpp"

namespace cermet {

/// One GPU for all tests of the program, or what stands for it (tests/emulator); null, with a reason, where there is
/// none.
struct TestDevice {
  std::optional<emulator::Mode> emulated = emulator::mode_from_environment();
  std::string reason = emulated ? "" : cuda::unavailable_reason();
  std::unique_ptr<Device> device = emulated         ? emulator::make_emulated_device(*emulated)
                                   : reason.empty() ? make_device("cuda")
                                                    : nullptr;
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
inline std::int64_t extent_bytes(const TensorView& view) { return byte_range(view).bytes; }

/// Whether a name contains what an environment variable has, where it is set: CERMET_TEST_KERNEL, CERMET_TEST_CASE.
inline bool is_chosen(std::string_view name, const char* variable) {
  const char* const wanted = std::getenv(variable);
  return !wanted || name.find(wanted) != std::string_view::npos;
}

/// Kernels of an operator without those in CERMET_DISABLE_KERNELS.
inline std::vector<const Kernel*> enabled_kernels_of(OpKind op) {
  std::vector<const Kernel*> list;
  for (const Kernel* kernel : cuda::kernels_of(op))
    if (!is_disabled(kernel->name) && is_chosen(kernel->name, "CERMET_TEST_KERNEL")) list.push_back(kernel);
  return list;
}

/// Runs one CUDA kernel on a case and compares with the reference; rows of results are `padding` elements apart.
/// Returns "" or what is wrong, and in `launches` what ran. The kernel is bound to the case's problem, or to `bound`,
/// of which the case is a run.
inline std::string run_on_device(const CaseData& data, const Expected& expected, const Kernel& kernel,
                                 std::int64_t padding, const DeviceQueue& queue, ThreadPool& pool,
                                 std::vector<RecordedLaunch>* launches = nullptr, const Problem* bound = nullptr) {
  const std::vector<cuda::Program> programs = kernel.programs(bound ? *bound : data.problem);
  RecordingStream recording(*queue.stream, programs, queue.programs->get(programs));
  std::int64_t counted = 0;
  std::string problem =
      run_case_on_device(data, expected, kernel, queue, pool, {.padding = padding}, bound, &recording, &counted);
  if (launches) *launches = recording.launches;
  const auto fell_back = std::ranges::count_if(recording.launches, &RecordedLaunch::fallback);
  if (counted != fell_back) return fmt::format("counted {} fallbacks, launched {}", counted, fell_back);
  return problem;
}

}  // namespace cermet
