#include "cli/bench/result_files.hpp"

#include <algorithm>
#include <set>

#include "base/error.hpp"
#include "base/text.hpp"
#include "io/output_target.hpp"

namespace cermet::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t longest_name = 200;  ///< bytes; file systems take 255

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

std::string file_name_of(std::string name) {
  for (char& c : name)
    if (c == '/' || c == '\0') c = '_';
  if (name.empty() || name == "." || name == "..") name += "_";
  if (name.size() > longest_name) {
    std::size_t end = 0;
    for (std::size_t next = 0; next <= longest_name; next += first_utf8_unit(std::string_view(name).substr(next)).size)
      end = next;
    name.resize(end);
  }
  return name;
}

}  // namespace

void check_result_place(const std::string& output) {
  if (output.empty() || is_folder(output)) return;
  std::error_code ignored;
  require(!fs::exists(output, ignored),
          "--output {}: expected a folder, or a new file for a single result, found a file", output);
}

std::vector<fs::path> result_files(const std::string& output, const std::vector<std::string>& names) {
  if (output.empty()) return {};
  check_result_place(output);
  const fs::path place(output);
  if (place.extension() == ".npy" && !is_folder(place)) {
    require(names.size() == 1,
            "--output {}: expected a folder for the {} results, found a file's name; --output {} writes NAME.npy for "
            "each into a new folder",
            output, names.size(), (place.parent_path() / place.stem()).string());
    require_writable(place);
    return {place};
  }
  make_folders(place);
  std::vector<fs::path> files;
  for (const std::string& name : file_names_of(names)) files.push_back(place / (name + ".npy"));
  return files;
}

std::vector<std::string> file_names_of(const std::vector<std::string>& names) {
  std::vector<std::string> files(names.size());
  std::set<std::string> taken;
  const auto take = [&](std::size_t i, bool changed) {
    const std::string own = file_name_of(names[i]);
    if ((own != names[i]) != changed) return;
    files[i] = own;
    for (int number = 2; !taken.insert(files[i]).second; ++number) files[i] = fmt::format("{}_{}", own, number);
  };
  for (const bool changed : {false, true})
    for (std::size_t i = 0; i < names.size(); ++i) take(i, changed);
  return files;
}

}  // namespace cermet::cli
