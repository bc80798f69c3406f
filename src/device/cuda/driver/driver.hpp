// The NVIDIA driver, opened by name, so that its absence is a message and not a failure to load.
#pragma once

#include <cuda.h>

#include "base/error.hpp"

namespace cermet::cuda {

struct Driver {
#define X(name, symbol) decltype(&::symbol) name = nullptr;
#include "device/cuda/driver/functions.inc"
#undef X
  decltype(&::cuFuncGetParamInfo) func_get_param_info = nullptr;  ///< since CUDA 12.4; null in a driver before that

  /// Throws Error with the driver's name and text of the error, after `what`. Out of memory keeps its status.
  void check(CUresult result, const char* what) const;
};

/// Opens and initializes the driver at the first call. Throws Error(unsupported) saying what is missing: the library, a
/// function (too old), a device.
const Driver& driver();

/// Makes a context current while it lives.
class CurrentContext {
 public:
  explicit CurrentContext(CUcontext context) { driver().check(driver().ctx_push_current(context), "context"); }
  ~CurrentContext() {
    CUcontext popped = nullptr;
    driver().ctx_pop_current(&popped);
  }
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;
};

}  // namespace cermet::cuda
