// What Triton's compiler writes beside a kernel (NAME.json of its cache, `metadata` of what triton.compile returns).
#include <algorithm>

#include "foreign/manifest_reader.hpp"

namespace cermet::foreign {
namespace {

constexpr JsonLimits metadata_limits{.max_bytes = 1 << 18, .max_values = 1 << 12, .max_depth = 8};

/// Memory that the launcher would have to give: parameters after all others, also where their size is 0.
int scratch_pointers(const Json& root) {
  int count = 0;
  for (const char* key : {"global_scratch_size", "profile_scratch_size"}) {
    const auto size = root.find(key);
    if (!size) continue;
    if (size->as_integer() != 0) size->unexpected("0: a kernel that takes no scratch memory from its launcher");
    ++count;
  }
  return count;
}

}  // namespace

void read_triton_metadata(const std::filesystem::path& file, Instance& instance,
                          std::vector<std::string>& architectures) {
  const auto document = JsonDocument::read(file, metadata_limits);
  const Json root = document.root().as_object();
  instance.entry = read_identifier(root.at("name"));
  const Json target = root.at("target");
  if (target.at("backend").as_string() != "cuda") target.at("backend").unexpected("\"cuda\"");
  const std::int64_t warp = target.at("warp_size").as_integer(32, 32);
  const std::int64_t capability = target.at("arch").as_integer(75, 999);
  const std::string architecture =
      fmt::format("sm_{}{}", capability, capability >= 90 ? "a" : "");  // Triton compiles for Hopper's own instructions
  if (!architectures.empty() && architectures.front() != architecture)
    target.at("arch").unexpected(fmt::format("that of the other instances, {}", architectures.front()));
  architectures = {architecture};
  instance.threads = warp * root.at("num_warps").as_integer(1, 32);
  instance.shared_bytes = root.at("shared").as_integer(0, 1 << 20);
  if (const auto ctas = root.find("num_ctas")) ctas->as_integer(1, 1);
  instance.scratch_pointers = scratch_pointers(root);
}

}  // namespace cermet::foreign
