#include "comm/mpi_plugin.hpp"

#include <dlfcn.h>

#include <filesystem>

#include "base/env.hpp"
#include "base/own_file.hpp"
#include "comm/mpi_communicator.hpp"

namespace cermet::comm {
namespace {

namespace fs = std::filesystem;

const MpiInterface& open_mpi_plugin() {
  const std::vector<fs::path> places = plugin_places("libcermet_mpi.so", env::value(env::Name::CERMET_MPI_PLUGIN));
  for (const fs::path& path : places) {
    std::error_code error;
    if (!fs::exists(path, error)) continue;
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);  // MPI's own plugins look for its symbols
    if (!library) fail(Status::unsupported, "MPI plugin: expected to open {}, found: {}", path.string(), dlerror());
    const auto entry = reinterpret_cast<const MpiInterface* (*)()>(dlsym(library, "cermet_mpi_plugin"));
    if (!entry)
      fail(Status::unsupported, "MPI plugin: expected {} to be one of Cermet's, found no entry point", path.string());
    if (std::string_view(entry()->build) != CERMET_BUILD_ID)
      fail(Status::unsupported, "MPI plugin: expected {} from build '{}', found '{}'", path.string(), CERMET_BUILD_ID,
           entry()->build);
    return *entry();
  }
  fail(Status::unsupported,
       "MPI plugin: expected libcermet_mpi.so, found none ({}): build Cermet where MPI is installed, or name the file "
       "by CERMET_MPI_PLUGIN; `cermet launch` "
       "needs none on one host",
       none_of(places));
}

const MpiInterface& mpi_plugin() {
  static const MpiInterface& opened = open_mpi_plugin();
  return opened;
}

}  // namespace

std::unique_ptr<Communicator> join_mpi_world() { return make_mpi_communicator(mpi_plugin().make_world()); }

}  // namespace cermet::comm
