// Libraries that are opened when something first calls them.
#include "device/late_library.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/error_text.hpp"

namespace cermet {
namespace {

/// In no program of these tests, on every machine that builds Cermet, and small.
constexpr const char *file_name = "libutf8proc.so.2", *function_name = "utf8proc_version";

bool is_open() { return dlopen(file_name, RTLD_LAZY | RTLD_NOLOAD) != nullptr; }

TEST(LateLibrary, IsOpenedByItsFirstFunctionAndFoundBefore) {
  LateLibrary library("A library", file_name);
  const std::filesystem::path file = library.file();
  EXPECT_EQ(file.filename(), file_name);
  EXPECT_TRUE(std::filesystem::is_regular_file(file)) << file;
  EXPECT_EQ(library.problem(), "");
  EXPECT_EQ(build_id_of(file).size(), 40u) << build_id_of(file);
  EXPECT_FALSE(is_open());
  const char* (*version)() = nullptr;
  library.find(function_name, version);
  EXPECT_TRUE(is_open());
  EXPECT_GT(std::string_view(version()).size(), 0u);
  EXPECT_EQ(library.file(), file);
  EXPECT_EQ(error_text([&] { library.find("no_such_function", version); }),
            fmt::format("A library: expected a function no_such_function in {}, found none", file.string()));
}

TEST(LateLibrary, IsTheOneThatTheProcessHasOpen) {
  Dl_info here{};
  ASSERT_NE(dladdr(reinterpret_cast<const void*>(&std::puts), &here), 0);
  EXPECT_TRUE(std::filesystem::equivalent(LateLibrary("libc", "libc.so.6").file(), here.dli_fname)) << here.dli_fname;
}

TEST(LateLibrary, OneThatIsNowhereIsNamed) {
  LateLibrary library("A library", "libnone.so.1");
  EXPECT_EQ(library.problem().rfind("A library: expected libnone.so.1, found: ", 0), 0u) << library.problem();
  EXPECT_EQ(error_text([&] { library.file(); }), library.problem());
}

TEST(LateLibrary, FilesWithoutABuildIdHaveNone) {
  const std::filesystem::path text = std::filesystem::path(testing::TempDir()) / "late_library_test.txt";
  EXPECT_EQ(build_id_of(text / "nowhere"), "");
  std::ofstream(text) << "no library";
  EXPECT_EQ(build_id_of(text), "");
  // A library that ends within its notes, or in its table of segments.
  std::ifstream whole(LateLibrary("A library", file_name).file(), std::ios::binary);
  std::string bytes(4096, '\0');
  whole.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  for (const std::size_t length : {20, 100, 200, 600}) {
    std::ofstream(text, std::ios::binary | std::ios::trunc) << bytes.substr(0, length);
    EXPECT_EQ(build_id_of(text), "") << length;
  }
  std::filesystem::remove(text);
}

}  // namespace
}  // namespace cermet
