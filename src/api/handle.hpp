// What a C handle owns: a device and the threads that its operators run on.
#pragma once

#include <memory>
#include <string>

#include "base/thread_pool.hpp"
#include "cermet/cermet.h"
#include "device/device.hpp"

namespace cermet::api {

struct Context {
  std::unique_ptr<Device> device;
  std::string device_name;
  ThreadPool pool;
  Context(std::unique_ptr<Device> made, int threads);
};

}  // namespace cermet::api

/// Operators and models hold the context too, so that they outlive the handle.
struct cermet_handle {
  std::shared_ptr<cermet::api::Context> context;
};
