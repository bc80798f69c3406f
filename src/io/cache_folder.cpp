#include "io/cache_folder.hpp"

#include <cstdlib>

#include "base/env.hpp"
#include "base/error.hpp"
#include "base/text.hpp"

namespace cermet {

std::filesystem::path cache_folder() {
  const std::string& given = env::value(env::Name::CERMET_CACHE_DIR);
  if (!given.empty() && given.front() != '/')
    fail(Status::invalid_argument,
         "environment variable CERMET_CACHE_DIR: expected a path from the root (/...), which is one folder from "
         "everywhere, found {}",
         quote(given));
  if (!given.empty()) return given;
  const char *caches = std::getenv("XDG_CACHE_HOME"), *home = std::getenv("HOME");
  if (caches && *caches == '/')
    return std::filesystem::path(caches) / "cermet";  // a relative one is to be ignored, says the XDG specification
  return home && *home ? std::filesystem::path(home) / ".cache" / "cermet" : std::filesystem::path();
}

}  // namespace cermet
