// What a C handle owns: a device and the threads that its operators run on.
#pragma once

#include <dlpack/dlpack.h>

#include <memory>
#include <optional>
#include <string>

#include "base/thread_pool.hpp"
#include "cermet/cermet.h"
#include "device/device.hpp"
#include "jit/program_store.hpp"

namespace cermet::api {

struct Context {
  std::string device_spec;  ///< as make_device() takes it: "cuda:1"
  std::unique_ptr<Device> device;
  std::string device_name;
  DLDevice memory;  ///< where operands are: the host, or a GPU, which "null:sm_90" stands for too
  ThreadPool pool;
  std::unique_ptr<Stream> stream;  ///< of a GPU; null for the CPU
  std::optional<ProgramStore> programs;
  DeviceQueue queue;
  Context(std::string_view device, int threads);
};

}  // namespace cermet::api

/// Operators and models hold the context too, so that they outlive the handle.
struct cermet_handle {
  std::shared_ptr<cermet::api::Context> context;
};
