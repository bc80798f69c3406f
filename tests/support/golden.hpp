// Text that a file holds and a test must reproduce. CERMET_APPROVE=1 in the environment rewrites the files; the diff is
// then the review.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

namespace cermet {

inline std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// Expects `text` to be what tests/`name` holds.
inline void expect_golden(std::string_view name, const std::string& text) {
  const std::filesystem::path path = std::filesystem::path(CERMET_SOURCE_DIR) / "tests" / name;
  const char* approve = std::getenv("CERMET_APPROVE");
  if (approve && std::string_view(approve) == "1") {
    std::ofstream(path, std::ios::binary) << text;
    return;
  }
  EXPECT_EQ(text, read_text(path)) << "differs from tests/" << name << "; CERMET_APPROVE=1 accepts the new text";
}

}  // namespace cermet
