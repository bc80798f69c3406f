#include "api/handle.hpp"

#include <charconv>

#include "api/guard.hpp"
#include "kernel/cpu/isa.hpp"

namespace cermet::api {
namespace {

constexpr int most_threads = 1024;

int checked_threads(int threads) {
  require(threads >= 0 && threads <= most_threads, "threads: expected 0 to {}, found {}", most_threads, threads);
  return threads;
}

/// The index in "cuda:1"; 0 for the other names that make_device() accepts.
int index_of(std::string_view spec) {
  int index = 0;
  if (spec.starts_with("cuda:")) std::from_chars(spec.data() + 5, spec.data() + spec.size(), index);
  return index;
}

}  // namespace

Context::Context(std::string_view spec, int threads) : device_spec(spec), device(make_device(spec)), pool(checked_threads(threads)) {
  memory = device->target() ? DLDevice{kDLCUDA, index_of(spec)} : DLDevice{kDLCPU, 0};
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
    *handle = new cermet_handle{std::make_shared<api::Context>(device, threads)};
  });
}

void cermet_destroy(cermet_handle* handle) { delete handle; }
int32_t cermet_computes(const cermet_handle* handle) { return handle && handle->context->device->computes() ? 1 : 0; }
int32_t cermet_threads(const cermet_handle* handle) { return handle ? handle->context->pool.size() : 0; }
const char* cermet_device(const cermet_handle* handle) { return handle ? handle->context->device_name.c_str() : ""; }
