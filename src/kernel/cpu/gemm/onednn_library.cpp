#include "kernel/cpu/gemm/onednn_library.hpp"

#include <dlfcn.h>

#include <array>

#include "base/env.hpp"
#include "base/error.hpp"

namespace cermet::cpu {
namespace {

struct OpenedOneDnn {
  OneDnn functions;
  OneDnnPrimitives primitives;
  Decline missing, missing_primitives;

  OpenedOneDnn() {
    const std::string& given = env::value(env::Name::CERMET_ONEDNN);
    if (given == "off") {
      missing = missing_primitives = "CERMET_ONEDNN is off";
      return;
    }
    void* const handle = open(given);
    if (!handle) {
      missing_primitives = missing;
      return;
    }
    find(handle, "dnnl_sgemm", functions.sgemm);
    find(handle, "dnnl_gemm_s8s8s32", functions.gemm_s8s8s32);
    find(handle, "omp_get_max_threads", functions.omp_get_max_threads);
    find(handle, "omp_set_num_threads", functions.omp_set_num_threads);
    missing_primitives = missing;
    find_primitives(handle);
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

  void find_primitives(void* handle) {
    OneDnnPrimitives& p = primitives;
    const auto find_one = [&](const char* name, auto& function) { find(handle, name, function, missing_primitives); };
    find_one("dnnl_engine_create", p.engine_create);
    find_one("dnnl_stream_create", p.stream_create);
    find_one("dnnl_stream_destroy", p.stream_destroy);
    find_one("dnnl_primitive_attr_create", p.attr_create);
    find_one("dnnl_primitive_attr_set_scratchpad_mode", p.attr_set_scratchpad_mode);
    find_one("dnnl_primitive_desc_destroy", p.primitive_desc_destroy);
    find_one("dnnl_primitive_desc_query_md", p.primitive_desc_query_md);
    find_one("dnnl_primitive_create", p.primitive_create);
    find_one("dnnl_primitive_destroy", p.primitive_destroy);
    find_one("dnnl_primitive_execute", p.primitive_execute);
    find_one("dnnl_memory_create", p.memory_create);
    find_one("dnnl_memory_destroy", p.memory_destroy);
    find_one("dnnl_memory_desc_get_size", p.memory_desc_get_size);
    find_one("dnnl_reorder_primitive_desc_create", p.reorder_desc_create);
    if (dlsym(handle, "dnnl_memory_desc_init_by_strides")) {
      find_one("dnnl_memory_desc_init_by_strides", p.memory_desc_init_by_strides);
      find_one("dnnl_memory_desc_init_by_tag", p.memory_desc_init_by_tag);
      find_one("dnnl_matmul_desc_init", p.matmul_desc_init);
      find_one("dnnl_primitive_desc_create", p.primitive_desc_create);
    } else {
      find_one("dnnl_memory_desc_create_with_strides", p.memory_desc_create_with_strides);
      find_one("dnnl_memory_desc_create_with_tag", p.memory_desc_create_with_tag);
      find_one("dnnl_memory_desc_destroy", p.memory_desc_destroy);
      find_one("dnnl_matmul_primitive_desc_create", p.matmul_desc_create);
    }
  }

  template <class F>
  void find(void* handle, const char* name, F& function) {
    find(handle, name, function, missing);
  }
  /// Also in what the library needs: its OpenMP runtime.
  template <class F>
  static void find(void* handle, const char* name, F& function, Decline& missing) {
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
const Decline& onednn_primitives_missing() { return opened_onednn().missing_primitives; }
const OneDnnPrimitives& onednn_primitives() { return opened_onednn().primitives; }

}  // namespace cermet::cpu
