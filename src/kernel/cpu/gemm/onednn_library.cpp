#include "kernel/cpu/gemm/onednn_library.hpp"

#include <dlfcn.h>

#include <array>

#include "base/env.hpp"
#include "base/error.hpp"

namespace cermet::cpu {
namespace {

struct OpenedOneDnn {
  OneDnn functions;
  Decline missing;

  OpenedOneDnn() {
    const std::string& given = env::value(env::Name::CERMET_ONEDNN);
    if (given == "off") {
      missing = "CERMET_ONEDNN is off";
      return;
    }
    void* const handle = open(given);
    if (!handle) return;
    find(handle, "dnnl_sgemm", functions.sgemm);
    find(handle, "dnnl_gemm_s8s8s32", functions.gemm_s8s8s32);
    find(handle, "omp_get_max_threads", functions.omp_get_max_threads);
    find(handle, "omp_set_num_threads", functions.omp_set_num_threads);
  }

 private:
  /// Never closed: threads of its OpenMP runtime may outlive any use of it.
  void* open(const std::string& given) {
    if (!given.empty()) {
      void* const handle = dlopen(given.c_str(), RTLD_LAZY | RTLD_LOCAL);
      if (!handle) missing = fmt::format("CERMET_ONEDNN: expected oneDNN's library, found: {}", dlerror());
      return handle;
    }
    for (const char* name : std::array{"libdnnl.so.3", "libdnnl.so.2"})
      if (void* const handle = dlopen(name, RTLD_LAZY | RTLD_LOCAL)) return handle;
    missing = "oneDNN (libdnnl.so.3 or libdnnl.so.2) is not installed";
    return nullptr;
  }

  /// Also in what the library needs: its OpenMP runtime.
  template <class F>
  void find(void* handle, const char* name, F& function) {
    function = reinterpret_cast<F>(dlsym(handle, name));
    if (!function && !missing) missing = fmt::format("oneDNN: expected a function {}, found none", name);
  }
};

const OpenedOneDnn& opened_onednn() {
  static const OpenedOneDnn library;
  return library;
}

}  // namespace

const Decline& onednn_missing() { return opened_onednn().missing; }
const OneDnn& onednn() { return opened_onednn().functions; }

}  // namespace cermet::cpu
