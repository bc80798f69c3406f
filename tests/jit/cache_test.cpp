// The cache on disk: what is found, what is rejected, and concurrent processes.
#include "jit/cache.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "io/digest.hpp"
#include "jit/cache_entry.hpp"
#include "tests/model/scratch.hpp"

namespace cermet::jit {
namespace {

namespace fs = std::filesystem;
using test::content_of;
using test::ScratchFolder;

constexpr std::int64_t large = std::int64_t{1} << 30;

StoredImage image_of(std::string_view text, double seconds = 0.5) {
  const auto bytes = std::as_bytes(std::span(text));
  return {{bytes.begin(), bytes.end()}, "report of " + std::string(text), seconds};
}

std::string stored_text(const std::optional<StoredImage>& image) {
  return image ? std::string(reinterpret_cast<const char*>(image->bytes.data()), image->bytes.size()) : "nothing";
}

void overwrite(const fs::path& file, std::string_view content) {
  std::ofstream(file, std::ios::binary | std::ios::trunc) << content;
}

struct Cache : testing::Test {
  ScratchFolder scratch;
  DiskCache cache{scratch / "cache", large};

  fs::path entry(const std::string& key) const { return cache.folder() / digest(key); }
  /// What `find` logs and returns.
  std::pair<std::string, std::string> find_logged(DiskCache& in, const std::string& key) {
    testing::internal::CaptureStderr();
    const std::string found = stored_text(in.find(key));
    return {found, testing::internal::GetCapturedStderr()};
  }
  /// Expects a damaged entry to be reported once, not loaded, and replaced by the next store.
  void expect_refused(const std::string& key, std::string_view reason) {
    const auto [found, warning] = find_logged(cache, key);
    EXPECT_EQ(found, "nothing");
    EXPECT_NE(warning.find(reason), std::string::npos) << warning;
    EXPECT_EQ(find_logged(cache, key).second, "") << "reported twice";
    cache.store(key, "again", image_of("new"));
    EXPECT_EQ(find_logged(cache, key), std::pair(std::string("new"), std::string()));
    EXPECT_EQ(std::distance(fs::directory_iterator(cache.folder()), {}), 1) << "left something behind";
  }
};

TEST_F(Cache, FindsWhatWasStoredAndNothingElse) {
  EXPECT_EQ(stored_text(cache.find("key")), "nothing");
  cache.store("key", "name", image_of(std::string_view("cubin\0bytes", 11)));
  const auto found = cache.find("key");
  ASSERT_TRUE(found);
  EXPECT_EQ(stored_text(found), std::string("cubin\0bytes", 11));
  EXPECT_EQ(found->seconds, 0.5);
  EXPECT_EQ(found->log, "report of " + std::string("cubin\0bytes", 11));
  EXPECT_EQ(stored_text(cache.find("key2")), "nothing");
  DiskCache other(cache.folder(), large);  // another process
  EXPECT_EQ(stored_text(other.find("key")), std::string("cubin\0bytes", 11));
  EXPECT_EQ(content_of(entry("key") / "source.cu"), "key");
}

TEST_F(Cache, DamagedImageIsReplaced) {
  cache.store("key", "name", image_of("cubin"));
  overwrite(entry("key") / "image", "cubix");
  expect_refused("key", "image: expected checksum");
}

TEST_F(Cache, TruncatedImageIsReplaced) {
  cache.store("key", "name", image_of("cubin"));
  overwrite(entry("key") / "image", "cub");
  expect_refused("key", "image: expected 5 bytes, found 3");
}

TEST_F(Cache, MissingImageIsReplaced) {
  cache.store("key", "name", image_of("cubin"));
  fs::remove(entry("key") / "image");
  expect_refused("key", "image: expected 5 bytes, found 0");
}

TEST_F(Cache, DamagedDescriptionIsReplaced) {
  for (const char* text :
       {"", "{\"format\": 1", "[]", "{\"format\": 2}", "{\"format\": \"one\"}", "{\"format\": 1, \"name\": \"n\"}"}) {
    SCOPED_TRACE(text);
    DiskCache fresh(cache.folder(), large);
    fresh.store("key", "name", image_of("cubin"));
    overwrite(entry("key") / "entry.json", text);
    const auto [found, warning] = find_logged(fresh, "key");
    EXPECT_EQ(found, "nothing");
    EXPECT_NE(warning.find("entry.json: "), std::string::npos) << warning;
    EXPECT_NE(warning.find("expected"), std::string::npos) << warning;
    fresh.store("key", "name", image_of("new"));
    EXPECT_EQ(stored_text(fresh.find("key")), "new");
  }
}

TEST_F(Cache, DamagedSourceIsReplaced) {
  cache.store("key", "name", image_of("cubin"));
  overwrite(entry("key") / "source.cu", "kez");
  expect_refused("key", "source.cu: expected checksum");
}

TEST_F(Cache, EntryOfAnotherKeyIsNotLoaded) {
  cache.store("other", "name", image_of("cubin"));
  fs::rename(entry("other"), entry("key"));
  expect_refused("key", "source.cu: expected checksum");
}

TEST_F(Cache, LinkIsNotFollowed) {
  cache.store("key", "name", image_of("cubin"));
  fs::rename(entry("key") / "image", scratch / "image");
  fs::create_symlink(scratch / "image", entry("key") / "image");
  expect_refused("key", "image: expected 5 bytes, found 0");
  EXPECT_EQ(content_of(scratch / "image"), "cubin");
}

TEST_F(Cache, FileInPlaceOfAnEntryIsReplaced) {
  fs::create_directory(cache.folder());
  overwrite(entry("key"), "not a folder");
  expect_refused("key", "expected a folder");
}

TEST_F(Cache, UnwritableFolderIsToldOnce) {
  scratch.file("file", "");
  DiskCache broken(scratch / "file" / "cache", large);
  testing::internal::CaptureStderr();
  EXPECT_EQ(stored_text(broken.find("key")), "nothing");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  testing::internal::CaptureStderr();
  broken.store("key", "name", image_of("cubin"));
  broken.store("key2", "name", image_of("cubin"));
  broken.trim();
  const std::string warning = testing::internal::GetCapturedStderr();
  EXPECT_NE(warning.find("cannot be written"), std::string::npos) << warning;
  EXPECT_EQ(warning.find('\n'), warning.size() - 1) << warning;
}

TEST_F(Cache, ZeroBytesOrNoFolderKeepNothing) {
  for (DiskCache* none :
       {std::make_unique<DiskCache>(scratch / "none", 0).release(), std::make_unique<DiskCache>("", large).release()}) {
    const std::unique_ptr<DiskCache> owner(none);
    none->store("key", "name", image_of("cubin"));
    EXPECT_EQ(stored_text(none->find("key")), "nothing");
    EXPECT_TRUE(none->entries(true).empty());
  }
  EXPECT_FALSE(fs::exists(scratch / "none"));
}

TEST_F(Cache, TheLeastRecentlyUsedGoFirst) {
  const std::string text(10'000, 'x');
  for (const char* key : {"a", "b", "c", "d"}) cache.store(key, key, image_of(text));
  int hours = 10;
  for (const char* key : {"c", "a", "d", "b"})
    fs::last_write_time(entry(key), fs::file_time_type::clock::now() - std::chrono::hours(hours--));
  const std::int64_t one = cache.entries(false).front().bytes;

  DiskCache later(cache.folder(), 2 * one + one / 2);
  EXPECT_EQ(stored_text(later.find("a")), text);  // used now
  later.trim();
  EXPECT_EQ(stored_text(later.find("a")), text);
  EXPECT_EQ(stored_text(later.find("b")), text);
  EXPECT_EQ(stored_text(later.find("c")), "nothing");
  EXPECT_EQ(stored_text(later.find("d")), "nothing");
}

TEST_F(Cache, WhatThisProcessUsesStays) {
  DiskCache small(cache.folder(), 100);
  small.store("a", "a", image_of(std::string(1000, 'x')));
  small.store("b", "b", image_of(std::string(1000, 'y')));
  small.trim();
  EXPECT_EQ(small.entries(true).size(), 2u);
  DiskCache other(cache.folder(), 100);
  other.trim();
  EXPECT_EQ(other.entries(true).size(), 0u);
}

TEST_F(Cache, IsTrimmedNowAndThen) {
  cache.store("old", "old", image_of(std::string(1000, 'x')));
  DiskCache small(cache.folder(), 6400);
  const auto entries = [&] { return small.entries(false).size(); };
  small.trim_if_due();
  EXPECT_EQ(entries(), 1u) << "it has stored nothing";
  cache.store("older", "older", image_of(std::string(9000, 'x')));
  small.store("a", "a", image_of("first"));
  small.trim_if_due();
  EXPECT_LE(entries(), 2u) << "the first time";
  cache.store("again", "again", image_of(std::string(9000, 'x')));
  small.store("b", "b", image_of("second"));
  const std::size_t before = entries();
  small.trim_if_due();
  EXPECT_EQ(entries(), before) << "7 bytes are less than 1/64";
  small.store("c", "c", image_of(std::string(200, 'y')));
  small.trim_if_due();
  EXPECT_LE(entries(), 3u);
  EXPECT_EQ(stored_text(small.find("again")), "nothing");
}

TEST_F(Cache, TrimTakesWhatDeadProcessesLeft) {
  cache.store("key", "name", image_of("cubin"));
  for (const char* name : {".new-dead01", ".new-live01"}) {
    fs::create_directory(cache.folder() / name);
    overwrite(cache.folder() / name / "image", "half");
  }
  fs::last_write_time(cache.folder() / ".new-dead01", fs::file_time_type::clock::now() - std::chrono::hours(2));
  cache.trim();
  EXPECT_FALSE(fs::exists(cache.folder() / ".new-dead01"));
  EXPECT_TRUE(fs::exists(cache.folder() / ".new-live01"));
  EXPECT_EQ(stored_text(cache.find("key")), "cubin");
}

TEST_F(Cache, ListsVerifiesAndRemovesItsOwnOnly) {
  cache.store("a", "first", image_of("one"));
  cache.store("b", "second", image_of("two"));
  overwrite(cache.folder() / "notes.txt", "mine");
  fs::create_directory(cache.folder() / "photos");
  overwrite(entry("b") / "image", "twx");
  EXPECT_EQ(cache.strangers(), (std::vector<std::string>{"notes.txt", "photos"}));

  std::size_t damaged = 0;
  for (const DiskCache::Entry& entry : cache.entries(true)) damaged += !entry.problem.empty();
  EXPECT_EQ(damaged, 1u);
  EXPECT_TRUE(cache.remove(digest("b")));
  EXPECT_TRUE(cache.remove(digest("never stored")));
  EXPECT_TRUE(DiskCache(scratch / "no folder", large).remove(digest("a")));
  ASSERT_EQ(cache.entries(true).size(), 1u);
  EXPECT_EQ(cache.entries(true).front().name, "first");

  overwrite(entry("a") / "thesis.tex", "mine too");
  EXPECT_FALSE(cache.remove(digest("a"))) << "a folder with anything else in it stays";
  EXPECT_EQ(content_of(entry("a") / "thesis.tex"), "mine too");
  EXPECT_EQ(content_of(cache.folder() / "notes.txt"), "mine");
}

// ---- Many processes ----

/// Runs body(i) in processes; returns how many did not end with true.
template <class Body>
int failures_of_processes(int count, Body body) {
  std::vector<pid_t> children;
  for (int i = 0; i < count; ++i) {
    const pid_t child = fork();
    if (child == 0) _exit(body(i) ? 0 : 1);
    children.push_back(child);
  }
  int failures = 0;
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    failures += !(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  return failures;
}

TEST_F(Cache, ManyProcessesMayStoreTheSameEntry) {
  const std::string text(50'000, 'x');
  EXPECT_EQ(failures_of_processes(6,
                                  [&](int) {
                                    for (int round = 0; round < 60; ++round) {
                                      const std::string key = "key " + std::to_string(round / 4);
                                      if (round % 4 != 3) cache.store(key, "name", image_of(text));
                                      if (stored_text(cache.find(key)) != text) return false;
                                    }
                                    return true;
                                  }),
            0);
  EXPECT_EQ(cache.entries(true).size(), 15u);
  for (const DiskCache::Entry& entry : cache.entries(true)) EXPECT_EQ(entry.problem, "");
  EXPECT_EQ(std::distance(fs::directory_iterator(cache.folder()), {}), 15) << "left something behind";
}

TEST_F(Cache, ReadersSeeWholeEntriesWhileOthersReplaceAndDelete) {
  const std::string text(50'000, 'x');
  EXPECT_EQ(
      failures_of_processes(5,
                            [&](int process) {
                              for (int round = 0; round < 100; ++round) {
                                if (process == 0) cache.store("key", "name", image_of(text));
                                if (process == 1) cache.remove(digest("key"));
                                if (process <= 1) continue;
                                const ReadEntry read = read_entry(entry("key"), true);
                                if (read.state == ReadEntry::State::damaged) return false;
                                if (read.state == ReadEntry::State::sound && read.image.bytes.size() != text.size())
                                  return false;
                              }
                              return true;
                            }),
      0);
}

}  // namespace
}  // namespace cermet::jit
