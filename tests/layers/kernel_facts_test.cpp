// What other folders need to know of a kernel is a field of Kernel or Program, which its author sees. So no source
// outside of kernel/ decides by a kernel's name, by the path of a program's header or by generated text; where it did,
// a new kernel was wrong without a message.
#include <gtest/gtest.h>

#include <iterator>
#include <map>
#include <set>

#include "tests/layers/includes.hpp"

namespace cermet::test {
namespace {

/// Files that may compare names of kernels, and why.
const std::map<std::string, std::string> may_compare{
    {"src/select/select.cpp", "users name kernels, or families of them"},
    {"src/select/measured_choice.cpp", "tables of measured choices name kernels"},
    {"src/select/tune/fit.cpp", "tables of measured choices name kernels"},
    {"src/foreign/own_names.cpp", "kernels from outside must have other names"},
    {"src/foreign/store.cpp", "a stored kernel's folder has its name"},
};

std::string text_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// "a.header == b", "program.task.find(", "== kernel->name".
bool compares(const std::string& line) {
  static const std::string field = R"(((\.|->)(header|task|prelude)|[kK]ernel(\(\))?(\.|->)name)\b\)?)",
                           compared = R"(\s*([=!]=|\.(starts_with|ends_with|find|rfind|contains|substr|compare)\())";
  static const std::regex pattern(field + compared + R"(|[=!]= *[\w.>()*-]*)" + field);
  return std::regex_search(line, pattern);
}

/// Literals like the names of kernels, and of what belongs to them: "gemm.linear.hopper", "ranks.{}", "conv.rows".
std::set<std::string> kernel_names(const fs::path& root) {
  static const std::regex name(R"rx("[a-z]+\.[a-z0-9_.{}]+")rx");
  std::set<std::string> names;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / "src" / "kernel")) {
    if (entry.path().extension() != ".cpp") continue;
    const std::string text = text_of(entry.path());
    for (std::sregex_iterator at(text.begin(), text.end(), name), end; at != end; ++at) names.insert(at->str());
  }
  return names;
}

/// Sources outside of kernel/, by their path from the repository's root.
std::map<std::string, std::string> other_sources(const fs::path& root) {
  std::map<std::string, std::string> sources;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / "src")) {
    const std::string path = fs::relative(entry.path(), root).string();
    if ((path.ends_with(".cpp") || path.ends_with(".hpp")) && !path.starts_with("src/kernel/"))
      sources.emplace(path, text_of(entry.path()));
  }
  return sources;
}

TEST(KernelFacts, AreNotReadFromNamesHeadersOrText) {
  std::set<std::string> unused;
  for (const auto& [file, reason] : may_compare) unused.insert(file);
  for (const auto& [path, text] : other_sources(CERMET_SOURCE_DIR)) {
    std::istringstream lines(text);
    int number = 0;
    for (std::string line; std::getline(lines, line);) {
      ++number;
      if (!compares(line)) continue;
      EXPECT_TRUE(may_compare.contains(path)) << path << ":" << number << ": " << line;
      unused.erase(path);
    }
  }
  EXPECT_TRUE(unused.empty()) << *unused.begin() << " compares no names any more";
}

TEST(KernelFacts, NoOtherFolderNamesAKernel) {
  const std::set<std::string> names = kernel_names(CERMET_SOURCE_DIR);
  EXPECT_GT(names.size(), 150u);
  EXPECT_TRUE(names.contains("\"gemm.linear.hopper\"") && names.contains("\"ranks.{}\""));
  for (const auto& [path, text] : other_sources(CERMET_SOURCE_DIR))
    for (const std::string& name : names) EXPECT_EQ(text.find(name), text.npos) << path << " names " << name;
}

TEST(KernelFacts, ComparisonsAreSeen) {
  EXPECT_TRUE(compares(R"(if (program.header.starts_with("kernel/cuda/device/gemm/")) return;)"));
  EXPECT_TRUE(compares(R"(return program.header == "kernel/cuda/device/gemm/hopper.cuh";)"));
  EXPECT_TRUE(compares(R"(program->task.find(".columns = 0,") == std::string::npos)"));
  EXPECT_TRUE(compares(R"(return std::string_view(kernel->name).starts_with(family);)"));
  EXPECT_TRUE(compares(R"(if (wanted == choice.kernel->name))"));
  EXPECT_FALSE(compares(R"(names.insert(kernel->name);)"));
  EXPECT_FALSE(compares(R"(const std::string text = program.header + program.task;)"));
}

}  // namespace
}  // namespace cermet::test
