#include "device/cuda/plugin.hpp"

#include <dlfcn.h>

#include <filesystem>
#include <vector>

#include "base/env.hpp"
#include "base/own_file.hpp"

namespace cermet::cuda {
namespace {

namespace fs = std::filesystem;

const PluginInterface& open_plugin() {
  const std::vector<fs::path> places = plugin_places("libcermet_cuda.so", env::value(env::Name::CERMET_CUDA_PLUGIN));
  for (const fs::path& path : places) {
    std::error_code error;
    if (!fs::exists(path, error)) continue;
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) fail(Status::unsupported, "CUDA plugin: expected to open {}, found: {}", path.string(), dlerror());
    const auto entry = reinterpret_cast<const PluginInterface* (*)()>(dlsym(library, "cermet_cuda_plugin"));
    if (!entry)
      fail(Status::unsupported, "CUDA plugin: expected {} to be one of Cermet's, found no entry point", path.string());
    const PluginInterface* found = entry();
    if (std::string_view(found->build) != build_id())
      fail(Status::unsupported, "CUDA plugin: expected {} from build '{}', found '{}'", path.string(), build_id(),
           found->build);
    return *found;
  }
  fail(Status::unsupported, "CUDA plugin: expected libcermet_cuda.so, found none ({})", none_of(places));
}

}  // namespace

const char* build_id() { return CERMET_BUILD_ID; }

const PluginInterface& plugin() {
  static const PluginInterface& opened =
      open_plugin();  // an exception leaves it unset, so that a later call tries again
  return opened;
}

std::string unavailable_reason() {
  try {
    if (plugin().device_count() > 0) return "";
    return "driver: expected at least one CUDA device, found none";
  } catch (const Error& error) {
    return error.what();
  }
}

TensorMap window_map(const Device& device, const WindowMapShape& shape) {
  if (const auto* const own = dynamic_cast<const WindowMaps*>(&device)) return own->window_map(shape);
  return device.computes() ? plugin().window_map(device, shape) : TensorMap{};
}

const std::string& driver_version() {
  static const std::string version = unavailable_reason().empty() ? plugin().driver_version() : "";
  return version;
}

const std::string& blas_problem() {
  static const std::string problem = unavailable_reason().empty() ? plugin().blas_problem() : "";
  return problem;
}

}  // namespace cermet::cuda
