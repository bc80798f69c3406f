#include "select/tuning_database.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/model/scratch.hpp"
#include "tests/select/tuning_entries.hpp"
#include "tests/support/error_text.hpp"

namespace cermet {
namespace {

using test::made_entry;
using test::number_of;
using test::ScratchFolder;

/// Runs the body in a process of a user who owns nothing; returns its exit code.
template <class Body>
int as_nobody(Body&& body) {
  const pid_t child = fork();
  if (child == 0) {
    if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) _exit(99);
    _exit(body());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(TuningDatabase, KeepsWhatWasPut) {
  const ScratchFolder scratch;
  const auto file = scratch / "folder/more/tuning.db";
  {
    TuningDatabase database = TuningDatabase::open(file);
    EXPECT_TRUE(database.empty());
    EXPECT_FALSE(std::filesystem::exists(file)) << "looking makes nothing";
    for (int i = 0; i < 50; ++i) database.put(made_entry(fmt::format("region {}", i), i));
    EXPECT_EQ(number_of(*database.find(made_entry("region 7", 0).key)), 7);
  }
  const TuningDatabase again = TuningDatabase::open(file);
  ASSERT_EQ(again.all().size(), 50u);
  for (int i = 0; i < 50; ++i) {
    const auto found = again.find(made_entry(fmt::format("region {}", i), 0).key);
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(*found, made_entry(fmt::format("region {}", i), i));
  }
  EXPECT_EQ(again.find(made_entry("region 50", 0).key), std::nullopt);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(file.parent_path()), {}), 1)
      << "nothing is left beside it";
}

TEST(TuningDatabase, TextsMayHoldAnything) {
  const ScratchFolder scratch;
  TuningEntry entry = made_entry("'; DROP TABLE entries; -- \"\\\n\t \xc3\xa9 \xff", 3, "a \"device\"");
  TuningDatabase::open(scratch / "tuning.db").put(entry);
  EXPECT_EQ(TuningDatabase::open(scratch / "tuning.db").find(entry.key), entry);
}

TEST(TuningDatabase, SeesOthersChangesWhenItIsReadAgain) {
  const ScratchFolder scratch;
  TuningDatabase one = TuningDatabase::open(scratch / "tuning.db"), two = TuningDatabase::open(scratch / "tuning.db");
  one.put(made_entry("a", 1));
  two.put(made_entry("b", 2));
  one.put(made_entry("b", 3));
  EXPECT_EQ(number_of(*two.find(made_entry("b", 0).key)), 2) << "a snapshot does not change under its reader";
  EXPECT_EQ(two.find(made_entry("a", 0).key), std::nullopt);
  two.reload();
  EXPECT_EQ(number_of(*two.find(made_entry("b", 0).key)), 3);
  EXPECT_EQ(number_of(*two.find(made_entry("a", 0).key)), 1);
}

TEST(TuningDatabase, ClearsByDevice) {
  const ScratchFolder scratch;
  EXPECT_EQ(TuningDatabase::open(scratch / "tuning.db").clear(), 0);
  EXPECT_FALSE(std::filesystem::exists(scratch / "tuning.db"));
  TuningDatabase database = TuningDatabase::open(scratch / "tuning.db");
  database.put(made_entry("a", 1, "x"));
  database.put(made_entry("b", 2, "x"));
  database.put(made_entry("a", 3, "y"));
  EXPECT_EQ(database.clear("x"), 2);
  EXPECT_EQ(database.all().size(), 1u);
  EXPECT_EQ(TuningDatabase::open(scratch / "tuning.db").all().size(), 1u);
  EXPECT_EQ(database.clear(), 1);
  EXPECT_TRUE(TuningDatabase::open(scratch / "tuning.db").empty());
}

TEST(TuningDatabase, RefusesFaultyEntries) {
  const ScratchFolder scratch;
  TuningDatabase database = TuningDatabase::open(scratch / "tuning.db");
  TuningEntry entry = made_entry("a", 1);
  entry.seconds = -1;
  EXPECT_EQ(error_text([&] { database.put(entry); }), "tuning entry: seconds: expected a positive number, found -1");
  EXPECT_FALSE(std::filesystem::exists(scratch / "tuning.db"));
}

TEST(TuningDatabase, IsReadWhereNobodyMayWrite) {
  const ScratchFolder scratch;
  const auto folder = scratch / "folder";
  TuningDatabase::open(folder / "tuning.db").put(made_entry("a", 1));
  for (const auto& path : {scratch.path(), folder}) std::filesystem::permissions(path, std::filesystem::perms(0555));
  std::filesystem::permissions(folder / "tuning.db", std::filesystem::perms(0444));
  const int code = as_nobody([&] {
    TuningDatabase database = TuningDatabase::open(folder / "tuning.db");
    const auto found = database.find(made_entry("a", 0).key);
    if (!found || number_of(*found) != 1) return 1;
    const std::string text = error_text([&] { database.put(made_entry("b", 2)); });
    return text.find("tuning.db: ") != std::string::npos && text.find("readonly") != std::string::npos ? 0 : 2;
  });
  for (const auto& path : {scratch.path(), folder}) std::filesystem::permissions(path, std::filesystem::perms(0755));
  EXPECT_EQ(code, 0);
}

TEST(TuningDatabase, WithoutPermissionThereIsNothing) {
  const ScratchFolder scratch;
  TuningDatabase::open(scratch / "closed/tuning.db").put(made_entry("a", 1));
  TuningDatabase::open(scratch / "open/tuning.db").put(made_entry("a", 1));
  std::filesystem::permissions(scratch.path(), std::filesystem::perms(0755));
  std::filesystem::permissions(scratch / "closed", std::filesystem::perms(0));
  std::filesystem::permissions(scratch / "open/tuning.db", std::filesystem::perms(0));
  const int code = as_nobody([&] {
    if (!TuningDatabase::open(scratch / "closed/tuning.db").empty()) return 1;
    if (!TuningDatabase::open(scratch / "open/tuning.db").empty()) return 2;
    if (!TuningDatabase::open(scratch / "missing/tuning.db").empty()) return 3;
    TuningDatabase missing = TuningDatabase::open(scratch / "missing/tuning.db");
    return error_text([&] { missing.put(made_entry("a", 1)); }).find("Permission denied") == std::string::npos ? 4 : 0;
  });
  std::filesystem::permissions(scratch / "closed", std::filesystem::perms(0755));
  EXPECT_EQ(code, 0);
  EXPECT_FALSE(TuningDatabase::open(scratch / "closed/tuning.db").empty()) << "nothing was moved or changed";
}

}  // namespace
}  // namespace cermet
