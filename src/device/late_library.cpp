#include "device/late_library.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <cstring>
#include <fstream>
#include <span>
#include <vector>

#include "base/error.hpp"
#include "base/own_file.hpp"

namespace cermet {
namespace {

namespace fs = std::filesystem;

/// A library or program that is open already; null where it is not. It must be closed.
void* opened(const char* name) { return dlopen(name, RTLD_LAZY | RTLD_NOLOAD | RTLD_LOCAL); }

fs::path path_of(void* handle) {
  const link_map* map = nullptr;
  return dlinfo(handle, RTLD_DI_LINKMAP, static_cast<void*>(&map)) == 0 ? fs::path(map->l_name) : fs::path();
}

/// Folders in which the loader looks for what this code's own library needs, in its order but for those of its cache.
std::vector<fs::path> search_path() {
  void* handle = opened(own_file().c_str());
  if (!handle) handle = opened(nullptr);  // it is part of the program
  std::vector<fs::path> folders;
  Dl_serinfo size{};
  if (handle && dlinfo(handle, RTLD_DI_SERINFOSIZE, &size) == 0) {
    std::vector<std::max_align_t> memory(size.dls_size / sizeof(std::max_align_t) + 1);
    auto* info = reinterpret_cast<Dl_serinfo*>(memory.data());
    *info = size;
    if (dlinfo(handle, RTLD_DI_SERINFO, info) == 0)
      for (const Dl_serpath& folder : std::span(static_cast<Dl_serpath*>(info->dls_serpath), info->dls_cnt))
        folders.emplace_back(folder.dls_name);
  }
  if (handle) dlclose(handle);
  return folders;
}

template <class T>
bool read_at(std::ifstream& file, std::uint64_t offset, T& value) {
  file.seekg(static_cast<std::streamoff>(offset));
  return static_cast<bool>(file.read(reinterpret_cast<char*>(&value), sizeof(value)));
}

constexpr std::uint64_t most_note_bytes = 4096;

using namespace std::string_view_literals;

/// The build ID among the notes of a segment, which fills `bytes`.
std::string build_id_in(std::span<const char> bytes) {
  for (std::size_t at = 0; at + sizeof(Elf64_Nhdr) <= bytes.size();) {
    Elf64_Nhdr note{};
    std::memcpy(&note, bytes.data() + at, sizeof(note));
    const auto padded = [](std::uint64_t size) { return (size + 3) / 4 * 4; };
    const std::uint64_t name = at + sizeof(note), content = name + padded(note.n_namesz),
                        end = content + padded(note.n_descsz);
    if (end > bytes.size()) return "";
    if (note.n_type == NT_GNU_BUILD_ID && std::string_view(bytes.data() + name, note.n_namesz) == "GNU\0"sv) {
      std::string digits;
      for (std::uint64_t i = 0; i < note.n_descsz; ++i)
        digits += fmt::format("{:02x}", static_cast<unsigned char>(bytes[content + i]));
      return digits;
    }
    at = end;
  }
  return "";
}

}  // namespace

fs::path LateLibrary::file() {
  const std::lock_guard lock(mutex_);
  if (!file_.empty()) return file_;
  if (void* handle = opened(name_.c_str())) {
    handle_ = handle;
    return file_ = path_of(handle);
  }
  for (const fs::path& folder : search_path()) {
    std::error_code error;
    if (fs::is_regular_file(folder / name_, error)) return file_ = folder / name_;
  }
  open(name_);
  return file_ = path_of(handle_);
}

std::string LateLibrary::problem() {
  try {
    file();
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

void LateLibrary::open(const std::string& place) {
  handle_ = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle_) fail(Status::unsupported, "{}: expected {}, found: {}", product_, name_, dlerror());
}

void* LateLibrary::address(const char* symbol) {
  const fs::path place = file();
  const std::lock_guard lock(mutex_);
  if (!handle_) open(place.string());
  void* found = dlsym(handle_, symbol);
  if (!found)
    fail(Status::unsupported, "{}: expected a function {} in {}, found none", product_, symbol, place.string());
  return found;
}

std::string build_id_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  Elf64_Ehdr header{};
  if (!read_at(file, 0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64)
    return "";
  for (std::uint64_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment{};
    if (!read_at(file, header.e_phoff + i * sizeof(segment), segment)) return "";
    if (segment.p_type != PT_NOTE) continue;
    std::vector<char> notes(std::min(segment.p_filesz, most_note_bytes));
    file.seekg(static_cast<std::streamoff>(segment.p_offset));
    if (!file.read(notes.data(), static_cast<std::streamsize>(notes.size()))) return "";
    if (std::string digits = build_id_in(notes); !digits.empty()) return digits;
  }
  return "";
}

}  // namespace cermet
