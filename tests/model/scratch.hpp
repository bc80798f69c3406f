// Files that live for one test, and the errors that reading them should give.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace cermet::test {

/// A folder of its own, removed with everything in it.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "cermet-test-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("cannot create " + pattern);
    path_ = pattern;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }
  /// Writes a file anew and returns its path. The old one is removed first: file systems may bring a file that is cut
  /// to zero and rewritten to disk at once, and tests write thousands.
  std::filesystem::path file(std::string_view name, std::string_view content) const {
    std::filesystem::remove(path_ / name);
    std::ofstream(path_ / name, std::ios::binary) << content;
    return path_ / name;
  }
  /// Number of entries: what a failed write left behind.
  std::ptrdiff_t entries() const { return std::distance(std::filesystem::directory_iterator(path_), {}); }

 private:
  std::filesystem::path path_;
};

inline std::string content_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The error that a call ends with, or nothing.
template <class F>
std::optional<Error> error_of(F&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

/// Expects an error of one line with a status, whose message contains every fragment.
template <class F>
void expect_error(Status status, std::initializer_list<std::string_view> fragments, F&& call) {
  const std::optional<Error> error = error_of(call);
  ASSERT_TRUE(error.has_value()) << "expected an error, found success";
  const std::string_view message = error->what();
  EXPECT_STREQ(status_name(error->status()), status_name(status)) << message;
  EXPECT_EQ(message.find('\n'), std::string_view::npos) << message;
  EXPECT_LT(message.size(), 600u) << message;
  for (const std::string_view fragment : fragments) {
    EXPECT_NE(message.find(fragment), std::string_view::npos) << "expected \"" << fragment << "\" in: " << message;
  }
}

}  // namespace cermet::test
