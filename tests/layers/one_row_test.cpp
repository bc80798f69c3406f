// An elementwise operator is a row of op/pointwise.inc: reference, kernels of both backends, bindings and documentation
// follow from it. So no other source names one, but for what some operators have besides: rewrite rules, and the
// operators of ONNX that become them. An option is a row of model/engine_options.inc or sampling_options.inc.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <string_view>

namespace cermet::test {
namespace {

namespace fs = std::filesystem;

bool is_of_a_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

bool names(std::string_view text, std::string_view word) {
  for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || !is_of_a_name(text[at - 1])) && (end == text.size() || !is_of_a_name(text[end]))) return true;
  }
  return false;
}

/// Files below these folders that name an operator, from the repository's root.
std::set<std::string> files_that_name(std::string_view op) {
  const fs::path root = CERMET_SOURCE_DIR;
  std::set<std::string> found;
  for (const char* folder : {"src", "include", "python", "cmake", "examples"})
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / folder)) {
      if (!entry.is_regular_file()) continue;
      std::ifstream file(entry.path(), std::ios::binary);
      const std::string text{std::istreambuf_iterator<char>(file), {}};
      if (names(text, op)) found.insert(fs::relative(entry.path(), root).string());
    }
  return found;
}

TEST(OneRow, IsAllThatNamesAnElementwiseOperator) {
  // Names that mean nothing else; with one attribute, two and none, and of integers.
  for (const char* op : {"celu", "selu", "mish", "hard_swish", "bitwise_not"}) {
    std::set<std::string> files = files_that_name(op);
    EXPECT_EQ(files.erase("src/op/pointwise.inc"), 1u) << op;
    for (const std::string& file : files)
      EXPECT_TRUE(file.starts_with("src/onnx/") || file.starts_with("src/graph/rewrite/") ||
                  file.starts_with("python/src/cermet/torch/") || file.starts_with("python/tests/"))
          << op << " is named in " << file;
  }
}

TEST(OneRow, IsAllThatNamesAnOptionOutsideOfWhatActsOnIt) {
  for (const char* option : {"overlap_experts", "expert_exchange", "tensor_parallel"})
    for (const std::string& file : files_that_name(option))
      EXPECT_TRUE(file.starts_with("src/model/")) << option << " is named in " << file;
  // Members of C's structs, which were there before the tables.
  for (const char* option :
       {"compact_weights", "rope_frequencies", "steps_per_launch", "min_p", "repetition_penalty"}) {
    std::set<std::string> files = files_that_name(option);
    EXPECT_EQ(files.erase("src/model/engine_options.inc") + files.erase("src/model/sampling_options.inc"), 1u);
    for (const std::string& file : files)
      EXPECT_FALSE(file.starts_with("src/cli/") || file.starts_with("python/native/") ||
                   file.starts_with("python/src/"))
          << option << " is named in " << file;
  }
}

TEST(OneRow, ANameIsAWholeWord) {
  EXPECT_TRUE(names("UNARY(mish, real", "mish"));
  EXPECT_FALSE(names("mishap, _mish", "mish"));
  EXPECT_TRUE(names("mishap mish", "mish"));
  EXPECT_GT(files_that_name("rms_norm").size(), 10u);
}

}  // namespace
}  // namespace cermet::test
