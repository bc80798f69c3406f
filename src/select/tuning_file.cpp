#include "select/tuning_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <tuple>

#include "base/error.hpp"
#include "io/digest.hpp"
#include "select/tuning_text.hpp"

namespace cermet {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t application = 0x43724d54;  // "CrMT", in the file's header
constexpr std::string_view table_form =
    "CREATE TABLE entries (device TEXT NOT NULL, versions TEXT NOT NULL, region TEXT NOT NULL, kernel TEXT NOT NULL, "
    "config TEXT NOT NULL, "
    "seconds REAL NOT NULL, spread REAL NOT NULL, date TEXT NOT NULL, rivals TEXT NOT NULL, checksum TEXT NOT NULL, "
    "PRIMARY KEY (device, versions, region)) WITHOUT ROWID";

std::string checksum_of(const TuningEntry& entry) { return digest(json_of(entry).dump()); }

std::int64_t pragma(SqliteConnection& connection, const char* name) {
  SqliteStatement statement = connection.prepare(fmt::format("PRAGMA {}", name));
  return statement.step() ? statement.integer(0) : 0;
}

/// Whether the file is an empty database: the form comes with the first entry, in one transaction.
bool is_blank(SqliteConnection& connection) {
  return pragma(connection, "application_id") == 0 && !connection.prepare("SELECT 1 FROM sqlite_schema").step();
}

void require_form(SqliteConnection& connection, const fs::path& file) {
  if (const std::int64_t found = pragma(connection, "application_id"); found != application)
    fail(Status::invalid_file,
         "{}: expected a tuning database, found a database of another program (application_id {})", file.string(),
         found);
  if (const std::int64_t found = pragma(connection, "user_version"); found != TuningFile::version)
    fail(Status::invalid_file, "{}: expected version {} of the tuning database, found {}", file.string(),
         TuningFile::version, found);
  SqliteStatement schema = connection.prepare("SELECT sql FROM sqlite_schema");
  if (!schema.step() || schema.text(0) != table_form || schema.step())
    fail(Status::invalid_file, "{}: expected the one table of a tuning database, found others", file.string());
}

/// Holds the folder against others that make the file or move it aside; a lock that ends with the process.
class FileGuard {
 public:
  explicit FileGuard(const fs::path& file)
      : descriptor_(::open(folder_of(file).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    if (descriptor_ < 0) fail(Status::io, "{}: {}", folder_of(file).string(), std::generic_category().message(errno));
    while (flock(descriptor_, LOCK_EX) != 0 &&
           errno == EINTR) {  // where the file system has no locks, SQLite's own are left
    }
  }
  ~FileGuard() { ::close(descriptor_); }
  FileGuard(const FileGuard&) = delete;
  FileGuard& operator=(const FileGuard&) = delete;

 private:
  static fs::path folder_of(const fs::path& file) {
    return file.has_parent_path() ? file.parent_path() : fs::path(".");
  }
  int descriptor_;
};

std::uint64_t inode_of(const fs::path& file) {
  struct stat status {};
  return stat(file.c_str(), &status) == 0 ? status.st_ino : 0;
}

/// Whether there is something under the name; a missing folder is nothing. Throws Error(invalid_file) where it is no
/// regular file, which opening might wait for.
bool is_there(const fs::path& file) {
  struct stat status {};
  if (stat(file.c_str(), &status) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return false;
    fail(Status::io, "{}: {}", file.string(), std::generic_category().message(errno));
  }
  if (!S_ISREG(status.st_mode))
    fail(Status::invalid_file, "{}: expected a file, found {}", file.string(),
         S_ISDIR(status.st_mode) ? "a folder" : "no file");
  if (access(file.c_str(), R_OK) != 0)
    fail(Status::io, "{}: {}", file.string(), std::generic_category().message(errno));
  return true;
}

TuningEntry entry_of(const SqliteStatement& row, const fs::path& file) {
  TuningEntry entry{{row.text(2), row.text(0), row.text(1)},
                    row.text(3),
                    row.text(4),
                    row.number(5),
                    row.number(6),
                    row.text(7),
                    parse_rivals(row.text(8), file.string() + ": rivals")};
  if (checksum_of(entry) != row.text(9))
    fail(Status::invalid_file, "{}: expected entries with their checksums, found one that was changed", file.string());
  if (const std::string fault = fault_of(entry); !fault.empty())
    fail(Status::invalid_file, "{}: {}", file.string(), fault);
  return entry;
}

}  // namespace

std::vector<TuningEntry> TuningFile::read(const fs::path& file) {
  if (!is_there(file)) return {};
  SqliteConnection connection(file, SqliteConnection::Access::read);
  if (is_blank(connection)) return {};
  require_form(connection, file);
  std::vector<TuningEntry> entries;
  // In the order of the key, which is that of the file: a change that put rows out of order is found, too.
  SqliteStatement rows = connection.prepare(
      "SELECT device, versions, region, kernel, config, seconds, spread, date, rivals, checksum FROM entries ORDER BY "
      "device, versions, region");
  while (rows.step()) {
    TuningEntry entry = entry_of(rows, file);
    const auto order = [](const TuningEntry& e) { return std::tie(e.key.device, e.key.versions, e.key.region); };
    if (!entries.empty() && !(order(entries.back()) < order(entry)))
      fail(Status::invalid_file, "{}: expected entries in the order of their keys, found others", file.string());
    entries.push_back(std::move(entry));
  }
  return entries;
}

fs::path TuningFile::move_aside(const fs::path& file) {
  const FileGuard guard(file);
  try {
    read(file);
    return {};  // another process was here
  } catch (const Error& error) {
    if (error.status() != Status::invalid_file) throw;
  }
  fs::path aside;
  std::error_code unreadable;
  int number = 0;
  do aside = fs::path(file) += fmt::format(".damaged-{}", ++number);
  while (fs::exists(fs::symlink_status(aside, unreadable)));
  for (const char* suffix : {"-wal", "-shm"}) {  // they would be taken for the next file's
    std::error_code ignored;
    fs::rename(fs::path(file) += suffix, fs::path(aside) += suffix, ignored);
  }
  std::error_code error;
  fs::rename(file, aside, error);
  if (error) fail(Status::io, "{}: {}", file.string(), error.message());
  return aside;
}

TuningFile::TuningFile(const fs::path& file) : file_(file) {
  std::error_code error;
  if (file.has_parent_path()) fs::create_directories(file.parent_path(), error);
  if (error) fail(Status::io, "{}: {}", file.parent_path().string(), error.message());
  const FileGuard guard(file);
  is_there(file);
  connection_.emplace(file, SqliteConnection::Access::write);
  if (is_blank(*connection_)) {
    // Readers go on while somebody writes. A process that is killed leaves the last complete state, and so does a
    // machine that loses power.
    connection_->run("PRAGMA journal_mode = WAL");
    connection_->run(fmt::format("BEGIN IMMEDIATE; {}; PRAGMA application_id = {}; PRAGMA user_version = {}; COMMIT",
                                 table_form, application, version)
                         .c_str());
  }
  require_form(*connection_, file);
  connection_->run("PRAGMA synchronous = NORMAL");
  inode_ = inode_of(file);
}

bool TuningFile::is_current() const { return inode_of(file_) == inode_; }

void TuningFile::put(const TuningEntry& entry) {
  SqliteStatement statement =
      connection_->prepare("INSERT OR REPLACE INTO entries VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)");
  statement.bind(1, entry.key.device)
      .bind(2, entry.key.versions)
      .bind(3, entry.key.region)
      .bind(4, entry.kernel)
      .bind(5, entry.config);
  statement.bind(6, entry.seconds)
      .bind(7, entry.spread)
      .bind(8, entry.date)
      .bind(9, json_of(entry)["rivals"].dump())
      .bind(10, checksum_of(entry));
  statement.step();
}

std::int64_t TuningFile::clear(std::string_view device) {
  SqliteStatement statement = connection_->prepare("DELETE FROM entries WHERE ?1 = '' OR device = ?1");
  statement.bind(1, device).step();
  return connection_->changes();
}

}  // namespace cermet
