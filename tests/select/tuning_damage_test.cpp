// What happens to a tuning database that is not one any more.
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "base/logger.hpp"
#include "io/sqlite.hpp"
#include "select/tuning_database.hpp"
#include "tests/model/scratch.hpp"
#include "tests/select/tuning_entries.hpp"
#include "tests/support/error_text.hpp"

namespace cermet {
namespace {

using test::content_of;
using test::made_entry;
using test::number_of;
using test::ScratchFolder;
namespace fs = std::filesystem;

constexpr int entry_count = 60;

struct TuningDamage : testing::Test {
  TuningDamage() { logger().set_level(spdlog::level::err); }  // hundreds of warnings
  ~TuningDamage() override { logger().set_level(spdlog::level::warn); }
  ScratchFolder scratch;
  fs::path file = scratch / "tuning.db";

  std::string sound() {
    TuningDatabase database = TuningDatabase::open(file);
    for (int i = 0; i < entry_count; ++i) database.put(made_entry(fmt::format("region {}", i), i));
    database = TuningDatabase::open(scratch / "other.db");  // closes the file
    return content_of(file);
  }
  std::size_t moved() const {
    std::size_t count = 0;
    for (const auto& entry : fs::directory_iterator(scratch.path()))
      count += entry.path().filename().string().starts_with("tuning.db.damaged-");
    return count;
  }
  /// Expects that nothing wrong is found and that the place can be used; returns whether the file was moved aside.
  bool expect_harmless() {
    const std::size_t before = moved();
    TuningDatabase database = TuningDatabase::open(file);
    for (const TuningEntry& entry : database.all()) EXPECT_GE(number_of(entry), 0) << "an entry that was not stored";
    database.put(made_entry("region new", 99));
    EXPECT_EQ(number_of(*TuningDatabase::open(file).find(made_entry("region new", 0).key)), 99);
    return moved() > before;
  }
  void expect_moved(std::string_view content) {
    scratch.file("tuning.db", content);
    EXPECT_TRUE(expect_harmless());
    EXPECT_EQ(content_of(scratch / "tuning.db.damaged-1"), content) << "nothing is lost";
  }
  /// A database with these statements run on it, in place of the tuning database.
  void make(const char* statements) {
    fs::remove(file);
    SqliteConnection(file, SqliteConnection::Access::write).run(statements);
  }
};

TEST_F(TuningDamage, AForeignFileIsMovedAside) { expect_moved("These are notes of mine, not a database.\n"); }

TEST_F(TuningDamage, BytesOfChanceAreMovedAside) {
  std::mt19937 random(1);
  std::string bytes(20'000, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  expect_moved(bytes);
}

TEST_F(TuningDamage, AnotherVersionIsMovedAside) {
  sound();
  SqliteConnection(file, SqliteConnection::Access::write).run("PRAGMA user_version = 2");
  EXPECT_NE(error_text([&] {
              TuningDatabase::open(file, TuningDatabase::Damage::refuse);
            }).find("expected version 1 of the tuning database, found 2"),
            std::string::npos);
  EXPECT_TRUE(expect_harmless());
}

TEST_F(TuningDamage, ADatabaseOfAnotherProgramIsMovedAside) {
  make("CREATE TABLE bookmarks (url TEXT)");
  EXPECT_NE(error_text([&] {
              TuningDatabase::open(file, TuningDatabase::Damage::refuse);
            }).find("found a database of another program (application_id 0)"),
            std::string::npos);
  EXPECT_TRUE(expect_harmless());
}

TEST_F(TuningDamage, OtherTablesAndTriggersAreRefused) {
  sound();
  SqliteConnection(file, SqliteConnection::Access::write)
      .run("CREATE TRIGGER t AFTER INSERT ON entries BEGIN DELETE FROM entries; END");
  EXPECT_NE(error_text([&] {
              TuningDatabase::open(file, TuningDatabase::Damage::refuse);
            }).find("expected the one table of a tuning database"),
            std::string::npos);
  EXPECT_TRUE(expect_harmless());
}

TEST_F(TuningDamage, AnEntryThatSomebodyEditedIsRefused) {
  for (const char* change : {"UPDATE entries SET seconds = seconds / 2 WHERE region = 'region 7'",
                             "UPDATE entries SET kernel = 'x' WHERE region = 'region 7'",
                             "UPDATE entries SET rivals = '[]' WHERE region = 'region 7'",
                             "UPDATE entries SET region = 'region x' WHERE region = 'region 7'"}) {
    fs::remove(file);
    sound();
    SqliteConnection(file, SqliteConnection::Access::write).run(change);
    EXPECT_NE(error_text([&] {
                TuningDatabase::open(file, TuningDatabase::Damage::refuse);
              }).find("expected entries with their checksums"),
              std::string::npos)
        << change;
    EXPECT_TRUE(expect_harmless()) << change;
  }
}

TEST_F(TuningDamage, AFolderInItsPlaceIsMovedAside) {
  fs::create_directory(file);
  EXPECT_TRUE(expect_harmless());
  EXPECT_TRUE(fs::is_directory(scratch / "tuning.db.damaged-1"));
}

TEST_F(TuningDamage, AnEmptyFileIsANewOne) {
  scratch.file("tuning.db", "");
  EXPECT_FALSE(expect_harmless());
}

TEST_F(TuningDamage, WhereItIsNotOursNothingIsMoved) {
  scratch.file("tuning.db", "notes");
  EXPECT_NE(error_text([&] {
              TuningDatabase::open(file, TuningDatabase::Damage::refuse);
            }).find("tuning.db: file is not a database"),
            std::string::npos);
  EXPECT_EQ(content_of(file), "notes");
}

TEST_F(TuningDamage, CutFilesAreHarmless) {
  const std::string content = sound();
  std::mt19937 random(2);
  std::size_t found = 0;
  for (int i = 0; i < 20; ++i) {
    scratch.file("tuning.db",
                 content.substr(0, std::uniform_int_distribution<std::size_t>(1, content.size() - 1)(random)));
    found += expect_harmless();
    fs::remove(file);
  }
  EXPECT_GT(found, 15u) << "a cut that is not found takes nothing with it";
}

TEST_F(TuningDamage, ChangedBytesAreHarmless) {
  const std::string content = sound();
  std::mt19937 random(3);
  std::size_t found = 0;
  for (int i = 0; i < 60; ++i) {
    std::string changed = content;
    for (int n = i % 3; n >= 0; --n)
      changed[std::uniform_int_distribution<std::size_t>(0, content.size() - 1)(random)] ^=
          static_cast<char>(1 << (random() % 8));
    scratch.file("tuning.db", changed);
    found += expect_harmless();
    fs::remove(file);
  }
  EXPECT_GT(found, 20u) << "the others are in bytes that nothing uses";
}

}  // namespace
}  // namespace cermet
