#include "io/sqlite.hpp"

#include <gtest/gtest.h>

#include "tests/model/scratch.hpp"

namespace cermet {
namespace {

using test::error_of;
using test::ScratchFolder;
using Access = SqliteConnection::Access;

TEST(Sqlite, StoresAndReadsValues) {
  const ScratchFolder scratch;
  const auto file = scratch / "a b%3f?#.db";  // a name that a URI would read otherwise
  {
    SqliteConnection connection(file, Access::write);
    connection.run("CREATE TABLE t (name TEXT, number REAL)");
    SqliteStatement insert = connection.prepare("INSERT INTO t VALUES (?1, ?2)");
    EXPECT_FALSE(insert.bind(1, std::string_view()).bind(2, 0.1).step());
    EXPECT_EQ(connection.changes(), 1);
  }
  EXPECT_TRUE(std::filesystem::exists(file));
  SqliteConnection connection(file, Access::read);
  SqliteStatement rows = connection.prepare("SELECT name, number, 7 FROM t");
  ASSERT_TRUE(rows.step());
  EXPECT_EQ(rows.text(0), "") << "an empty text, not NULL";
  EXPECT_EQ(rows.number(1), 0.1);
  EXPECT_EQ(rows.integer(2), 7);
  const auto error = error_of([&] { rows.integer(0); });
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->status(), Status::invalid_file);
  EXPECT_EQ(std::string(error->what()), file.string() + ": column name: expected an integer, found another type");
  EXPECT_FALSE(rows.step());
}

TEST(Sqlite, SaysWhetherAFileIsDamaged) {
  const ScratchFolder scratch;
  const auto status = [&](const std::filesystem::path& file, Access access) {
    const auto error = error_of([&] { SqliteConnection(file, access).run("SELECT 1 FROM sqlite_schema"); });
    EXPECT_TRUE(!error || std::string(error->what()).find(file.string() + ": ") == 0) << error->what();
    return error ? std::optional(error->status()) : std::nullopt;
  };
  scratch.file("notes", std::string(5000, 'x'));
  EXPECT_EQ(status(scratch / "notes", Access::read), Status::invalid_file);
  EXPECT_EQ(status(scratch / "notes", Access::write), Status::invalid_file);
  EXPECT_EQ(status(scratch / "missing", Access::read), Status::io);
  EXPECT_FALSE(std::filesystem::exists(scratch / "missing")) << "reading makes nothing";
  EXPECT_EQ(status(scratch / "missing/file", Access::write), Status::io);
  EXPECT_EQ(status(scratch / "new", Access::write), std::nullopt);
  const auto error = error_of([&] { SqliteConnection(scratch / "new", Access::write).run("SELECT nonsense"); });
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->status(), Status::io);
}

}  // namespace
}  // namespace cermet
