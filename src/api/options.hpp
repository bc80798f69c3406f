// Option structs of the C ABI whose first member is their size as the caller compiled it, so that members can be added
// at the end.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "base/error.hpp"

namespace cermet::api {

/// Writes the defaults into the caller's struct, as many of them as fit.
template <class Options>
void init_options(Options* options, std::size_t struct_size, Options (*defaults)()) {
  if (!options) return;
  Options made = defaults();
  made.struct_size = struct_size;
  std::memset(static_cast<void*>(options), 0, struct_size);
  std::memcpy(static_cast<void*>(options), &made, std::min(struct_size, sizeof(Options)));
}

/// The caller's struct, with the defaults for members that it does not have. Throws Error where it was not initialized,
/// or has members, set to something, that this library does not know. `first_size`: of the struct in version 0.1, where
/// members were added since.
template <class Options>
Options filled(const Options* given, Options (*defaults)(), std::string_view name,
               std::size_t first_size = sizeof(Options)) {
  Options options = defaults();
  if (!given) return options;
  const std::size_t size = given->struct_size;
  require(size >= first_size && size <= 4096, "{}: struct_size: expected {} as the init function sets it, found {}",
          name, sizeof(Options), size);
  const auto* bytes = reinterpret_cast<const std::byte*>(given);
  const bool newer =
      std::any_of(bytes + std::min(size, sizeof(Options)), bytes + size, [](std::byte b) { return b != std::byte{0}; });
  require(!newer, "{}: expected members that this library ({} bytes) knows, found others set in a struct of {} bytes",
          name, sizeof(Options), size);
  std::memcpy(static_cast<void*>(&options), given, std::min(size, sizeof(Options)));
  return options;
}

}  // namespace cermet::api
