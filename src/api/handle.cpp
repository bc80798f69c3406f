#include "api/handle.hpp"

#include "api/guard.hpp"
#include "kernel/cpu/isa.hpp"

namespace cermet::api {
namespace {

constexpr int most_threads = 1024;

int checked_threads(int threads) {
  require(threads >= 0 && threads <= most_threads, "threads: expected 0 to {}, found {}", most_threads, threads);
  return threads;
}

}  // namespace

Context::Context(std::unique_ptr<Device> made, int threads) : device(std::move(made)), pool(checked_threads(threads)) {
  device_name = device->kind() == DeviceKind::cpu ? fmt::format("cpu ({} threads, {})", pool.size(), cpu::name_of(cpu::active_isa())) : device->name();
  if (!device->target()) return;
  stream = device->make_stream();
  programs.emplace(*device);
  queue = {device.get(), stream.get(), &*programs};
}

}  // namespace cermet::api

using namespace cermet;  // NOLINT(google-build-using-namespace): the C functions below are the face of this namespace

cermet_status cermet_create(const char* device, int32_t threads, cermet_handle** handle) {
  return api::guarded([&] {
    api::require_pointer(device, "device");
    api::require_pointer(handle, "handle");
    *handle = new cermet_handle{std::make_shared<api::Context>(make_device(device), threads)};
  });
}

void cermet_destroy(cermet_handle* handle) { delete handle; }
int32_t cermet_threads(const cermet_handle* handle) { return handle ? handle->context->pool.size() : 0; }
const char* cermet_device(const cermet_handle* handle) { return handle ? handle->context->device_name.c_str() : ""; }
