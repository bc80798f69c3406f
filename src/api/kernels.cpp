// Kernels from outside behind the C ABI.
#include "cermet/kernels.h"

#include <string>

#include "api/guard.hpp"
#include "api/options.hpp"
#include "cermet/cpu_kernel.h"
#include "foreign/cpu_call.hpp"
#include "runtime/kernel_report.hpp"

namespace cermet::api {
namespace {

// What authors of kernels compile and what calls them.
static_assert(sizeof(cermet_cpu_call) == sizeof(foreign::CpuCall));
static_assert(offsetof(cermet_cpu_call, parameters) == offsetof(foreign::CpuCall, parameters));
static_assert(offsetof(cermet_cpu_call, parameter_count) == offsetof(foreign::CpuCall, parameter_count));
static_assert(offsetof(cermet_cpu_call, threads) == offsetof(foreign::CpuCall, threads));
static_assert(offsetof(cermet_cpu_call, parallel_for) == offsetof(foreign::CpuCall, parallel_for));
static_assert(offsetof(cermet_cpu_call, runtime) == offsetof(foreign::CpuCall, runtime));

cermet_kernel_options kernel_defaults() { return {sizeof(cermet_kernel_options), nullptr, nullptr, 60, 0}; }

KernelCheckOptions check_options(const cermet_kernel_options& options) {
  require(options.seconds >= 1 && options.seconds <= 3600, "options: seconds: expected 1 to 3600, found {}",
          options.seconds);
  KernelCheckOptions made;
  if (options.device) made.device = options.device;
  if (options.program) made.program = options.program;
  made.seconds = options.seconds;
  return made;
}

/// Keeps the text for this thread's caller.
void give(const JsonValue& json, const char** report) {
  thread_local std::string text;
  text = json.dump();
  if (report) *report = text.c_str();
}

}  // namespace
}  // namespace cermet::api

using namespace cermet;  // NOLINT(google-build-using-namespace): the C functions below are the face of this namespace

void cermet_kernel_options_init(cermet_kernel_options* options, size_t struct_size) {
  api::init_options(options, struct_size, api::kernel_defaults);
}

cermet_status cermet_kernel_add(const char* manifest, const cermet_kernel_options* options, const char** report) {
  return api::guarded([&] {
    api::require_pointer(manifest, "manifest");
    const cermet_kernel_options given = api::filled(options, api::kernel_defaults, "options");
    api::give(check_json(add_kernel(manifest, given.replace != 0, api::check_options(given))), report);
  });
}

cermet_status cermet_kernel_check(const char* name, const cermet_kernel_options* options, const char** report) {
  return api::guarded([&] {
    api::require_pointer(name, "name");
    const cermet_kernel_options given = api::filled(options, api::kernel_defaults, "options");
    api::give(check_json(check_stored_kernel(name, api::check_options(given))), report);
  });
}

cermet_status cermet_kernel_remove(const char* name) {
  return api::guarded([&] {
    api::require_pointer(name, "name");
    remove_stored_kernel(name);
  });
}

cermet_status cermet_kernel_list(const char** report) {
  return api::guarded([&] {
    api::require_pointer(report, "report");
    api::give(kernels_json(), report);
  });
}
