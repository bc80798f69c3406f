#include "foreign/code.hpp"

#include <dlfcn.h>
#include <elf.h>

#include <cstring>

#include "io/digest.hpp"
#include "io/posix_file.hpp"

namespace cermet::foreign {
namespace {

/// The header of an ELF file; throws where there is none of these machines.
Elf64_Half machine_of(const std::string& content, const std::string& file, std::string_view expected) {
  Elf64_Ehdr header{};
  const bool is_elf = content.size() >= sizeof header && content.starts_with(ELFMAG);
  if (!is_elf) fail(Status::invalid_file, "{}: expected {}, found a file that is none", file, expected);
  std::memcpy(&header, content.data(), sizeof header);
  if (header.e_ident[EI_CLASS] != ELFCLASS64)
    fail(Status::invalid_file, "{}: expected {}, found a 32-bit one", file, expected);
  return header.e_machine;
}

constexpr Elf64_Half own_machine =
#if defined(__x86_64__)
    EM_X86_64;
#elif defined(__aarch64__)
    EM_AARCH64;
#else
    EM_NONE;
#endif

/// Whether a text is somewhere in the content as a whole name: that of a section or a symbol, which end in a zero.
bool has_name(const std::string& content, const std::string& name) {
  return content.find(name + '\0') != std::string::npos;
}

}  // namespace

std::shared_ptr<const std::string> Code::bytes(const std::string& file) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<const std::string>& held = read_[file];
  if (held) return held;
  const std::filesystem::path path = folder_ / file;
  auto content = std::make_shared<const std::string>(read_file(path, Manifest::most_file_bytes));
  if (const auto expected = digests_.find(file); expected != digests_.end() && digest(*content) != expected->second)
    fail(Status::invalid_file, "{}: expected the file that was stored, with digest {}, found {}", path.string(),
         expected->second, digest(*content));
  return held = std::move(content);
}

CpuEntry Code::function(const std::string& file, const std::string& entry) {
  bytes(file);
  const std::lock_guard lock(mutex_);
  std::error_code error;
  const std::filesystem::path path = std::filesystem::absolute(folder_ / file, error);
  if (error)
    fail(Status::io, "{}: expected a path from the current folder, found: {}", (folder_ / file).string(),
         error.message());
  void*& library = loaded_[file];
  if (!library) library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    fail(Status::invalid_file, "{}: expected a shared object that can be loaded, found: {}", path.string(), dlerror());
  void* const function = dlsym(library, entry.c_str());
  if (!function) fail(Status::invalid_file, "{}: expected a function {}, found none", path.string(), entry);
  return reinterpret_cast<CpuEntry>(function);
}

void check_code(CodeKind kind, const std::string& content, const std::string& entry, const std::string& file) {
  constexpr Elf64_Half cuda_machine = 190;
  switch (kind) {
    case CodeKind::cuda:
      if (content.find(entry) == std::string::npos)
        fail(Status::invalid_file, "{}: expected a function {}, found none", file, entry);
      return;
    case CodeKind::ptx:
      if (content.find(".version") == std::string::npos || content.find('\0') != std::string::npos)
        fail(Status::invalid_file, "{}: expected PTX, found no .version line", file);
      if (content.find(fmt::format(".entry {}", entry)) == std::string::npos)
        fail(Status::invalid_file, "{}: expected .entry {}, found none", file, entry);
      return;
    case CodeKind::cubin:
    case CodeKind::triton:
      if (const auto found = machine_of(content, file, "a cubin"); found != cuda_machine)
        fail(Status::invalid_file, "{}: expected a cubin (ELF machine {}), found machine {}", file, cuda_machine,
             found);
      if (!has_name(content, ".text." + entry))
        fail(Status::invalid_file, "{}: expected a kernel {}, found none", file, entry);
      return;
    case CodeKind::shared_object:
      if (const auto found = machine_of(content, file, "a shared object"); found != own_machine)
        fail(Status::invalid_file, "{}: expected a shared object for this processor (ELF machine {}), found machine {}",
             file, own_machine, found);
      if (!has_name(content, entry)) fail(Status::invalid_file, "{}: expected a function {}, found none", file, entry);
  }
}

}  // namespace cermet::foreign
