// The law of the house: an include goes to a folder of lower rank or stays in its own. Ranks are the table of src/README.md.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>

namespace {

namespace fs = std::filesystem;
const fs::path source = fs::path(CERMET_SOURCE_DIR) / "src";

/// Calls body(match) for every line of a file that matches.
template <class Body>
void for_matches(const fs::path& file, const std::regex& pattern, Body body) {
  std::ifstream stream(file);
  std::smatch match;
  for (std::string line; std::getline(stream, line);)
    if (std::regex_search(line, match, pattern)) body(match);
}

std::string first_folder(const fs::path& relative) { return relative.begin()->string(); }

TEST(Layers, IncludesGoToLowerRanks) {
  std::map<std::string, int> rank{{"cermet", 8}};  // the installed headers: for api/, cli/ and users
  for_matches(source / "README.md", std::regex(R"(^\| (\d+) \| `([a-z]+)/)"), [&](const std::smatch& row) { rank[row[2]] = std::stoi(row[1]); });
  int includes = 0;
  for (const auto& entry : fs::recursive_directory_iterator(source)) {
    if (!std::regex_match(entry.path().extension().string(), std::regex(R"(\.(cpp|hpp|inc))"))) continue;
    const fs::path file = fs::relative(entry.path(), source);
    ASSERT_TRUE(rank.contains(first_folder(file))) << file << ": its folder is not in the table of src/README.md";
    for_matches(entry.path(), std::regex(R"re(^\s*#\s*include "([^"]+)")re"), [&](const std::smatch& include) {
      const std::string own = first_folder(file), other = first_folder(include[1].str());
      EXPECT_TRUE(own == other || (rank.contains(other) && rank[other] < rank[own])) << "src/" << file.string() << " includes " << include[1];
      ++includes;
    });
  }
  EXPECT_GT(includes, 100);
}

}  // namespace
