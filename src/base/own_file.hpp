// The file that this code was loaded from, and what was installed beside it.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace cermet {

/// The library that holds this code, or the program where it is part of one: a whole path without links, whatever name
/// it was called or opened by. Empty where the system does not say.
const std::filesystem::path& own_file();
/// The same for the code at an address.
std::filesystem::path file_of_code(const void* address);

/// Where a library that is opened by name may be: `given`, if there is such a path, else beside own_file() or in the
/// library folder of its prefix.
std::vector<std::filesystem::path> plugin_places(std::string_view name, const std::string& given);
/// Where the program `cermet` may be: beside own_file(), or in the bin folder of its prefix.
std::vector<std::filesystem::path> program_places();
/// ": no such file" after each place, for an error.
std::string none_of(const std::vector<std::filesystem::path>& places);

}  // namespace cermet
