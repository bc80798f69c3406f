#include "comm/mpi_plugin.hpp"

#include <dlfcn.h>

#include <filesystem>

#include "base/env.hpp"
#include "comm/mpi_communicator.hpp"

namespace cermet::comm {
namespace {

namespace fs = std::filesystem;

/// Where the variable says, beside this program or library, or in the library folder next to the program's.
std::vector<fs::path> mpi_places() {
  if (const std::string& given = env::value(env::Name::CERMET_MPI_PLUGIN); !given.empty()) return {given};
  Dl_info self{};
  if (!dladdr(reinterpret_cast<const void*>(&join_mpi_world), &self) || !self.dli_fname) return {};
  std::error_code error;
  const fs::path file = fs::canonical(self.dli_fname, error);
  const fs::path folder = (error ? fs::path(self.dli_fname) : file).parent_path();
  return {folder / "libcermet_mpi.so", folder.parent_path() / "lib" / "libcermet_mpi.so", folder.parent_path() / CERMET_LIBRARY_FOLDER / "libcermet_mpi.so"};
}

const MpiInterface& open_mpi_plugin() {
  for (const fs::path& path : mpi_places()) {
    std::error_code error;
    if (!fs::exists(path, error)) continue;
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);  // MPI's own plugins look for its symbols
    if (!library) fail(Status::unsupported, "MPI plugin: expected to open {}, found: {}", path.string(), dlerror());
    const auto entry = reinterpret_cast<const MpiInterface* (*)()>(dlsym(library, "cermet_mpi_plugin"));
    if (!entry) fail(Status::unsupported, "MPI plugin: expected {} to be one of Cermet's, found no entry point", path.string());
    if (std::string_view(entry()->build) != CERMET_BUILD_ID)
      fail(Status::unsupported, "MPI plugin: expected {} from build '{}', found '{}'", path.string(), CERMET_BUILD_ID, entry()->build);
    return *entry();
  }
  fail(Status::unsupported,
       "MPI plugin: expected libcermet_mpi.so beside the program, found none: Cermet was built where there was no MPI, or CERMET_MPI_PLUGIN "
       "names another file; `cermet launch` needs none on one host");
}

const MpiInterface& mpi_plugin() {
  static const MpiInterface& opened = open_mpi_plugin();
  return opened;
}

}  // namespace

std::unique_ptr<Communicator> join_mpi_world() { return make_mpi_communicator(mpi_plugin().make_world()); }

}  // namespace cermet::comm
