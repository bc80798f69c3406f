#include "base/own_file.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace cermet {
namespace {

namespace fs = std::filesystem;

TEST(OwnFile, IsTheProgramWithoutLinks) {
  EXPECT_EQ(own_file(), fs::read_symlink("/proc/self/exe"));
  EXPECT_EQ(own_file(), fs::canonical(own_file()));
}

TEST(OwnFile, OfALibraryIsThatLibrary) {
  Dl_info found{};
  const void* const code = reinterpret_cast<const void*>(&std::strtod);
  ASSERT_NE(dladdr(code, &found), 0);
  EXPECT_EQ(file_of_code(code), fs::canonical(found.dli_fname));
  EXPECT_NE(file_of_code(code), own_file());
  EXPECT_TRUE(file_of_code(nullptr).empty());
}

/// What the loader and argv[0] say changes with the current folder; this must not.
TEST(OwnFile, DoesNotDependOnTheCurrentFolder) {
  const fs::path before = fs::current_path();
  fs::current_path("/");
  EXPECT_EQ(file_of_code(reinterpret_cast<const void*>(&own_file)), own_file());
  fs::current_path(before);
}

TEST(OwnFile, PlacesAreBesideItUnlessOneIsGiven) {
  const std::vector<fs::path> places = plugin_places("libx.so", "");
  ASSERT_GE(places.size(), 2u);
  EXPECT_EQ(places[0], own_file().parent_path() / "libx.so");
  EXPECT_EQ(places[1], own_file().parent_path().parent_path() / "lib/libx.so");
  EXPECT_EQ(plugin_places("libx.so", "/a/b.so"), std::vector<fs::path>{"/a/b.so"});
  EXPECT_EQ(program_places().front(), own_file().parent_path() / "cermet");
  EXPECT_EQ(none_of({"/a", "/b"}), "/a: no such file; /b: no such file");
}

}  // namespace
}  // namespace cermet
