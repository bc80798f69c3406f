#include "device/cuda/driver/driver.hpp"

#include <dlfcn.h>

namespace cermet::cuda {
namespace {

constexpr int least_version = 12030;  // programmatic dependent launches inside captured graphs

std::string version_text(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

void* open_library() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) fail(Status::unsupported, "driver: expected an NVIDIA driver with libcuda.so.1, found: {}", dlerror());
  return library;
}

Driver open_driver() {
  void* library = open_library();
  // The version first: for a driver that is too old the message should say so, not name a missing function.
  const auto get_version = reinterpret_cast<decltype(&::cuDriverGetVersion)>(dlsym(library, "cuDriverGetVersion"));
  int version = 0;
  if (!get_version || get_version(&version) != CUDA_SUCCESS) version = 0;
  if (version < least_version)
    fail(Status::unsupported, "driver: expected one for CUDA {} or later, found one for CUDA {}",
         version_text(least_version), version_text(version));
  Driver d;
  const auto find = [&](const char* symbol) {
    void* function = dlsym(library, symbol);
    if (!function)
      fail(Status::unsupported, "driver: expected a function {}, found none in the driver for CUDA {}", symbol,
           version_text(version));
    return function;
  };
#define CERMET_TEXT(symbol) #symbol
#define X(name, symbol) d.name = reinterpret_cast<decltype(&::symbol)>(find(CERMET_TEXT(symbol)));
#include "device/cuda/driver/functions.inc"
#undef X
#undef CERMET_TEXT
  d.func_get_param_info = reinterpret_cast<decltype(&::cuFuncGetParamInfo)>(dlsym(library, "cuFuncGetParamInfo"));
  const CUresult result = d.init(0);
  if (result == CUDA_ERROR_NO_DEVICE)
    fail(Status::unsupported, "driver: expected at least one CUDA device, found none");
  d.check(result, "driver");
  return d;
}

}  // namespace

void Driver::check(CUresult result, const char* what) const {
  if (result == CUDA_SUCCESS) return;
  const char *name = nullptr, *text = nullptr;
  get_error_name(result, &name);
  get_error_string(result, &text);
  const Status status = result == CUDA_ERROR_OUT_OF_MEMORY ? Status::out_of_memory : Status::unsupported;
  fail(status, "{}: the CUDA driver reports {} ({})", what, name ? name : "an unknown error",
       text ? text : fmt::format("{}", static_cast<int>(result)).c_str());
}

const Driver& driver() {
  static const Driver opened = open_driver();
  return opened;
}

}  // namespace cermet::cuda
