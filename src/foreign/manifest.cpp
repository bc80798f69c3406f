#include "foreign/manifest.hpp"

#include <algorithm>

#include "foreign/manifest_reader.hpp"
#include "io/posix_file.hpp"

namespace cermet::foreign {

std::string_view name_of(CodeKind kind) {
  switch (kind) {
    case CodeKind::cuda: return "cuda";
    case CodeKind::cubin: return "cubin";
    case CodeKind::ptx: return "ptx";
    case CodeKind::triton: return "triton";
    case CodeKind::shared_object: return "shared_object";
  }
  return "";
}

std::uint32_t bytes_of(Parameter::Kind kind) {
  switch (kind) {
    case Parameter::Kind::i32:
    case Parameter::Kind::u32:
    case Parameter::Kind::f32: return 4;
    default: return 8;
  }
}

std::vector<std::string> Manifest::files() const {
  std::vector<std::string> list;
  for (const Instance& instance : instances)
    for (const std::string& file : {instance.file, instance.metadata})
      if (!file.empty() && std::ranges::find(list, file) == list.end()) list.push_back(file);
  return list;
}

Manifest read_manifest(const std::filesystem::path& file) {
  std::string text = read_file(file, Manifest::most_manifest_bytes);
  const auto document = JsonDocument::parse(
      text, file.string(), {.max_bytes = Manifest::most_manifest_bytes, .max_values = 1 << 14, .max_depth = 8});
  Manifest manifest = ManifestReader(document.root(), file.parent_path()).read();
  manifest.text = std::move(text);
  return manifest;
}

}  // namespace cermet::foreign
