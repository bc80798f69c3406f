#include "api/handle.hpp"

#include <algorithm>
#include <charconv>

#include "api/guard.hpp"
#include "base/env_check.hpp"
#include "base/log_sink.hpp"
#include "device/cuda/plugin.hpp"

namespace cermet::api {
namespace {

/// The index in "cuda:1"; 0 for the other names that make_device() accepts.
int index_of(std::string_view spec) {
  int index = 0;
  if (spec.starts_with("cuda:")) std::from_chars(spec.data() + 5, spec.data() + spec.size(), index);
  return index;
}

}  // namespace

Handle::Handle(std::string_view spec, int threads)
    : context({std::string(spec), threads}),
      device_name(context.description()),
      memory(context.target() ? DLDevice{kDLCUDA, index_of(spec)} : DLDevice{kDLCPU, 0}) {}

}  // namespace cermet::api

using namespace cermet;  // NOLINT(google-build-using-namespace): the C functions below are the face of this namespace

cermet_status cermet_create(const char* device, int32_t threads, cermet_handle** handle) {
  return api::guarded([&] {
    api::require_pointer(device, "device");
    api::require_pointer(handle, "handle");
    env::check();
    static const bool warned = [] {
      for (const std::string& sentence : env::unknown()) log().warn("{}", sentence);
      return true;
    }();
    static_cast<void>(warned);
    *handle = new cermet_handle{std::make_shared<api::Handle>(device, threads)};
  });
}

void cermet_destroy(cermet_handle* handle) { delete handle; }
int32_t cermet_computes(const cermet_handle* handle) { return handle && handle->shared->context.computes() ? 1 : 0; }
int32_t cermet_threads(const cermet_handle* handle) { return handle ? handle->shared->context.pool().size() : 0; }
const char* cermet_device(const cermet_handle* handle) { return handle ? handle->shared->device_name.c_str() : ""; }

cermet_status cermet_handle_set_allocator(cermet_handle* handle, cermet_allocate allocate, cermet_release release,
                                          void* user) {
  return api::guarded([&] {
    api::require_pointer(handle, "handle");
    require((allocate == nullptr) == (release == nullptr),
            "allocator: expected allocate and release, or none, found one");
    handle->shared->context.set_allocator({allocate, release, user});
  });
}

namespace {

/// What cermet_create takes and computes here, found once.
struct Devices {
  std::vector<std::string> names{"cpu"};
  std::string no_cuda = cuda::unavailable_reason();

  Devices() {
    if (!no_cuda.empty()) return;
    for (int i = 0; i < cuda::plugin().device_count(); ++i) names.push_back(fmt::format("cuda:{}", i));
  }
};

const Devices& devices() {
  static const Devices found;
  return found;
}

}  // namespace

size_t cermet_device_count(void) { return devices().names.size(); }
const char* cermet_device_name(size_t index) {
  return index < devices().names.size() ? devices().names[index].c_str() : nullptr;
}
const char* cermet_no_cuda(void) { return devices().no_cuda.c_str(); }

void cermet_set_log(cermet_log_callback callback, void* user, cermet_log_level level) {
  if (!callback) return set_log_sink({}, LogLevel::warn);
  const int clamped = std::clamp(static_cast<int>(level), 0, 3);
  set_log_sink([=](LogLevel at, const char* message) { callback(user, static_cast<cermet_log_level>(at), message); },
               static_cast<LogLevel>(clamped));
}
