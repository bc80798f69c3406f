#include "io/sqlite.hpp"

#include <sqlite3.h>

#include "base/error.hpp"

namespace cermet {
namespace {

constexpr int patience_milliseconds =
    60'000;  // others hold the lock for a millisecond; on a loaded machine many of them come first
constexpr int longest_value = 1 << 22;

bool is_damage(int code) {
  const int primary = code & 0xff;
  return primary == SQLITE_CORRUPT || primary == SQLITE_NOTADB || primary == SQLITE_FORMAT ||
         code == SQLITE_IOERR_SHORT_READ;
}

[[noreturn]] void fail_sqlite(sqlite3* handle, const std::string& file, int code) {
  fail(is_damage(code) ? Status::invalid_file : Status::io, "{}: {}", file,
       handle ? sqlite3_errmsg(handle) : sqlite3_errstr(code));
}

/// "file:/a%20b?immutable=1".
std::string uri_of(const std::filesystem::path& file, std::string_view query) {
  std::string text = "file:";
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::absolute(file, error);
  for (const char c : error ? file.string() : whole.string())
    if (c == '%' || c == '?' || c == '#') text += fmt::format("%{:02x}", static_cast<unsigned>(c));
    else text += c;
  return text + std::string(query);
}

}  // namespace

struct SqliteConnection::State {
  sqlite3* handle = nullptr;
  std::string file;
  ~State() { sqlite3_close_v2(handle); }

  int open(const std::string& uri, int flags) {
    sqlite3_close_v2(handle);
    handle = nullptr;
    return sqlite3_open_v2(uri.c_str(), &handle, flags | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE,
                           nullptr);
  }
  /// What is only known at the first read: whether the file can be shared with those who write it.
  int probe() const { return sqlite3_exec(handle, "PRAGMA schema_version", nullptr, nullptr, nullptr); }
  void distrust() const {
    sqlite3_busy_timeout(handle, patience_milliseconds);
    sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    sqlite3_db_config(handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
    sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
    sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
    sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, longest_value);
  }
};

SqliteConnection::SqliteConnection(const std::filesystem::path& file, Access access)
    : state_(std::make_unique<State>()) {
  state_->file = file.string();
  const bool writes = access == Access::write;
  // A reader that may not write could not remove what it keeps beside the database when it is the last.
  int code = state_->open(uri_of(file, ""), SQLITE_OPEN_READWRITE | (writes ? SQLITE_OPEN_CREATE : 0));
  if (code == SQLITE_OK) state_->distrust(), code = state_->probe();
  const int primary = code & 0xff;
  // Readers keep a file beside the database, which is useless in a read-only folder: the database is then what was
  // stored last.
  if (!writes && (primary == SQLITE_CANTOPEN || primary == SQLITE_READONLY)) {
    code = state_->open(uri_of(file, "?immutable=1"), SQLITE_OPEN_READONLY);
    if (code == SQLITE_OK) state_->distrust(), code = state_->probe();
  }
  if (code != SQLITE_OK) fail_sqlite(state_->handle, state_->file, code);
}

SqliteConnection::SqliteConnection(SqliteConnection&&) noexcept = default;
SqliteConnection& SqliteConnection::operator=(SqliteConnection&&) noexcept = default;
SqliteConnection::~SqliteConnection() = default;

void SqliteConnection::run(const char* statements) {
  const int code = sqlite3_exec(state_->handle, statements, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) fail_sqlite(state_->handle, state_->file, code);
}

std::int64_t SqliteConnection::changes() const { return sqlite3_changes64(state_->handle); }
std::string_view SqliteConnection::version() { return sqlite3_libversion(); }

struct SqliteStatement::State {
  SqliteConnection::State& connection;
  sqlite3_stmt* handle = nullptr;
  explicit State(SqliteConnection::State& of) : connection(of) {}
  ~State() { sqlite3_finalize(handle); }
};

SqliteStatement SqliteConnection::prepare(std::string_view statement) {
  auto made = std::make_unique<SqliteStatement::State>(*state_);
  const int code =
      sqlite3_prepare_v2(state_->handle, statement.data(), static_cast<int>(statement.size()), &made->handle, nullptr);
  if (code != SQLITE_OK) fail_sqlite(state_->handle, state_->file, code);
  return SqliteStatement(std::move(made));
}

SqliteStatement::SqliteStatement(std::unique_ptr<State> state) : state_(std::move(state)) {}
SqliteStatement::SqliteStatement(SqliteStatement&&) noexcept = default;
SqliteStatement::~SqliteStatement() = default;

SqliteStatement& SqliteStatement::bind(int place, std::string_view text) {
  const int code = sqlite3_bind_text64(state_->handle, place, text.data() ? text.data() : "", text.size(),
                                       SQLITE_TRANSIENT, SQLITE_UTF8);
  if (code != SQLITE_OK) fail_sqlite(state_->connection.handle, state_->connection.file, code);
  return *this;
}

SqliteStatement& SqliteStatement::bind(int place, double number) {
  const int code = sqlite3_bind_double(state_->handle, place, number);
  if (code != SQLITE_OK) fail_sqlite(state_->connection.handle, state_->connection.file, code);
  return *this;
}

bool SqliteStatement::step() {
  const int code = sqlite3_step(state_->handle);
  if (code != SQLITE_ROW && code != SQLITE_DONE) fail_sqlite(state_->connection.handle, state_->connection.file, code);
  return code == SQLITE_ROW;
}

void SqliteStatement::require_type(int column, int type, const char* expected) const {
  if (sqlite3_column_type(state_->handle, column) == type) return;
  fail(Status::invalid_file, "{}: column {}: expected {}, found another type", state_->connection.file,
       sqlite3_column_name(state_->handle, column), expected);
}

std::string SqliteStatement::text(int column) const {
  require_type(column, SQLITE_TEXT, "a text");
  const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(state_->handle, column));
  return {bytes, static_cast<std::size_t>(sqlite3_column_bytes(state_->handle, column))};
}

double SqliteStatement::number(int column) const {
  require_type(column, SQLITE_FLOAT, "a number");
  return sqlite3_column_double(state_->handle, column);
}

std::int64_t SqliteStatement::integer(int column) const {
  require_type(column, SQLITE_INTEGER, "an integer");
  return sqlite3_column_int64(state_->handle, column);
}

}  // namespace cermet
