#include "base/own_file.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>
#include <sys/auxv.h>

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <fstream>

namespace cermet {
namespace {

namespace fs = std::filesystem;

/// The file that the kernel has mapped at an address. The loader's own names are not enough: of the program it only
/// knows argv[0], "cermet" where it was found by PATH, and of a library what dlopen was given, relative to a folder
/// that may have changed since.
fs::path mapped_file(std::uintptr_t address) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0, end = 0;
    int path = 0;
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " %*s %*s %*s %*s %n", &begin, &end, &path) < 2) continue;
    if (address < begin || address >= end) continue;
    std::string name = path > 0 ? line.substr(static_cast<std::size_t>(path)) : "";
    constexpr std::string_view replaced = " (deleted)";  // by a newer build: its folder is still the right one
    std::error_code ignored;
    if (name.ends_with(replaced) && !fs::exists(name, ignored)) name.resize(name.size() - replaced.size());
    return name.starts_with('/') ? fs::path(name) : fs::path();
  }
  return {};
}

/// Without /proc, what the loader knows.
fs::path loaded_file(const void* address) {
  Dl_info info{};
  void* extra = nullptr;
  if (!dladdr1(address, &info, &extra, RTLD_DL_LINKMAP) || !extra) return {};
  const char* name = static_cast<const link_map*>(extra)->l_name;
  if (!*name)
    name = reinterpret_cast<const char*>(
        getauxval(AT_EXECFN));  // NOLINT(performance-no-int-to-ptr): a pointer by definition
  std::error_code error;
  fs::path file = name ? fs::canonical(name, error) : fs::path();
  return error ? fs::path() : file;
}

}  // namespace

fs::path file_of_code(const void* address) {
  fs::path mapped = mapped_file(reinterpret_cast<std::uintptr_t>(address));
  return mapped.empty() ? loaded_file(address) : mapped;
}

const fs::path& own_file() {
  static const fs::path file = file_of_code(reinterpret_cast<const void*>(&own_file));
  return file;
}

std::vector<fs::path> plugin_places(std::string_view name, const std::string& given) {
  if (!given.empty()) return {given};
  if (own_file().empty()) return {};
  const fs::path folder = own_file().parent_path(), prefix = folder.parent_path();
  std::vector<fs::path> places{folder / name, prefix / "lib" / name};
  if (CERMET_LIBRARY_FOLDER != std::string_view("lib")) places.push_back(prefix / CERMET_LIBRARY_FOLDER / name);
  return places;
}

std::vector<fs::path> program_places() {
  if (own_file().empty()) return {};
  const fs::path folder = own_file().parent_path(), prefix = folder.parent_path();
  return {folder / "cermet", prefix / "bin" / "cermet",
          prefix.parent_path() / "bin" / "cermet"};  // the last: from lib/x86_64-linux-gnu
}

std::string none_of(const std::vector<fs::path>& places) {
  std::string text;
  for (const fs::path& place : places)
    text += fmt::format("{}{}: no such file", text.empty() ? "" : "; ", place.string());
  return text;
}

}  // namespace cermet
