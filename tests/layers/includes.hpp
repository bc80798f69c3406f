// The rules of src/README.md as a function of a source tree: every include that violates one, by name.
#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace cermet::test {

namespace fs = std::filesystem;

struct IncludeReport {
  std::vector<std::string> broken;  ///< "src/op/op.cpp includes graph/graph.hpp: reason"
  int files = 0, includes = 0;
};

/// Calls body(match) for every line of a file that matches.
template <class Body>
void for_matches(const fs::path& file, const std::regex& pattern, Body body) {
  std::ifstream stream(file);
  std::smatch match;
  for (std::string line; std::getline(stream, line);)
    if (std::regex_search(line, match, pattern)) body(match);
}

/// The table of src/README.md, and the headers outside device code that cmake/embed.cmake hands to NVRTC.
class IncludeRules {
 public:
  explicit IncludeRules(const fs::path& root) {
    rank_["cermet/"] = 8;  // the installed headers: for api/, cli/ and users
    for_matches(root / "src" / "README.md", std::regex(R"(^\| (\d+) \| `([a-z/]+/)`)"),
                [&](const std::smatch& row) { rank_[row[2]] = std::stoi(row[1]); });
    for_matches(root / "cmake" / "embed.cmake", std::regex(R"(^list\(APPEND headers ([^)]+)\))"),
                [&](const std::smatch& list) {
                  const std::string names = list[1];
                  const std::regex name(R"(\S+)");
                  for (std::sregex_iterator at(names.begin(), names.end(), name), end; at != end; ++at)
                    embedded_.insert(at->str());
                });
  }

  /// Why a file may not include another, both relative to src/; empty where it may.
  std::string problem(const std::string& file, const std::string& include) const {
    const std::string own = folder(file), other = folder(include);
    if (own.empty()) return "its folder is not in the table of src/README.md";
    if (other.empty()) return "expected a folder of the table of src/README.md";
    if (is_device_code(file) && !is_device_code(include))
      return "expected a header that cmake/embed.cmake gives to NVRTC";
    const std::string own_backend = backend(own), other_backend = backend(other);
    if (!own_backend.empty() && !other_backend.empty() && own_backend != other_backend)
      return "expected nothing of another backend than " + own_backend;
    if (own.substr(0, own.find('/')) == other.substr(0, other.find('/'))) return "";
    const int own_rank = rank_.at(own), other_rank = rank_.at(other);
    return other_rank < own_rank
               ? ""
               : "expected a rank below " + std::to_string(own_rank) + ", found " + std::to_string(other_rank);
  }

  /// What NVRTC compiles: it has no headers but those, not even the standard library's.
  bool is_device_code(const std::string& file) const {
    return file.starts_with("kernel/cuda/device/") || embedded_.contains(file);
  }

 private:
  /// The longest row that a path is below; empty where there is none.
  std::string folder(const std::string& path) const {
    std::string found;
    for (const auto& [row, rank] : rank_)
      if (path.starts_with(row) && row.size() > found.size()) found = row;
    return found;
  }
  /// "cuda" of "kernel/cuda/": a row inside another's folder is one backend.
  static std::string backend(const std::string& row) {
    const std::size_t first = row.find('/') + 1;
    return row.substr(first, row.size() - first - (first < row.size()));
  }

  std::map<std::string, int> rank_;
  std::set<std::string> embedded_;
};

inline IncludeReport check_includes(const fs::path& root) {
  const IncludeRules rules(root);
  const std::regex quoted(R"re(^\s*#\s*include\s*"([^"]+)")re"), angled(R"re(^\s*#\s*include\s*<([^>]+)>)re");
  const std::set<std::string> extensions{".cpp", ".hpp", ".h", ".cuh", ".cu", ".inc"};
  IncludeReport report;
  for (const auto& entry : fs::recursive_directory_iterator(root / "src")) {
    if (!extensions.contains(entry.path().extension().string())) continue;
    ++report.files;
    const std::string file = fs::relative(entry.path(), root / "src").string();
    const auto check = [&](const std::string& include, const std::string& problem) {
      ++report.includes;
      if (!problem.empty()) report.broken.push_back("src/" + file + " includes " + include + ": " + problem);
    };
    for_matches(entry.path(), quoted,
                [&](const std::smatch& include) { check(include[1], rules.problem(file, include[1])); });
    // Headers that a host compiler reads too take <cstdint> where NVRTC does not see it; a .cuh may not.
    for_matches(entry.path(), angled, [&](const std::smatch& include) {
      check(include[1],
            entry.path().extension() == ".cuh" ? "expected a header that cmake/embed.cmake gives to NVRTC" : "");
    });
  }
  return report;
}

}  // namespace cermet::test
