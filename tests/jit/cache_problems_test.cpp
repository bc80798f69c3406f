// What the cache on disk says where it cannot keep anything.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>

#include "jit/cache.hpp"
#include "tests/model/scratch.hpp"

namespace cermet::jit {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t much = std::int64_t{1} << 30;

/// Each kernel's files have temporary names of their own, which messages must not differ by.
TEST(CacheProblems, AFullDiskIsToldOnce) {
  const test::ScratchFolder scratch;
  DiskCache cache(scratch / "cache", much);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{1000, before.rlim_max};
  testing::internal::CaptureStderr();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);  // a write beyond it fails as on a full disk
  for (int i = 0; i < 4; ++i)
    cache.store("key " + std::to_string(i), "name", {std::vector<std::byte>(5000), "report", 0.5});
  setrlimit(RLIMIT_FSIZE, &before);
  const std::string warning = testing::internal::GetCapturedStderr();
  EXPECT_NE(warning.find("cannot be written"), std::string::npos) << warning;
  EXPECT_EQ(std::ranges::count(warning, '\n'), 1) << warning;
  EXPECT_EQ(std::distance(fs::directory_iterator(cache.folder()), {}), 0) << "left something behind";
}

TEST(CacheProblems, SaysWhyItHoldsNothing) {
  const test::ScratchFolder scratch;
  EXPECT_EQ(DiskCache(scratch / "none", much).problem(), "") << "it may be made";
  EXPECT_EQ(DiskCache("", much).problem(), "no folder: neither CERMET_CACHE_DIR nor HOME is set");
  EXPECT_EQ(DiskCache(scratch / "none", 0).problem(), "off: CERMET_CACHE_BYTES is 0");
  EXPECT_EQ(DiskCache(scratch.file("file", ""), much).problem(), "cannot be read: Not a directory");
}

}  // namespace
}  // namespace cermet::jit
