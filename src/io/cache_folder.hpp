// The folder in which a user's Cermet keeps what it made and measured: compiled kernels, limits, kernels from outside.
#pragma once

#include <filesystem>

namespace cermet {

/// CERMET_CACHE_DIR, or cermet/ in XDG_CACHE_HOME or ~/.cache; empty where none of these is set.
std::filesystem::path cache_folder();

/// Where kernels from outside are kept inside it (foreign/store.hpp).
inline constexpr const char* foreign_kernels_folder = "foreign";

}  // namespace cermet
