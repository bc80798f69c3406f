// SQLite databases that many processes share, opened with distrust: what is in the file may be anything.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace cermet {

class SqliteStatement;

/// A connection, for one thread at a time and not for use after a fork. What fails throws Error naming the file:
/// Status::invalid_file where the file is damaged or no database, Status::io for everything else. Others that write are
/// waited for.
class SqliteConnection {
 public:
  enum class Access : std::uint8_t {
    read,   ///< of a file that is there; in a folder that may not be written, too
    write,  ///< makes the file
  };
  SqliteConnection(const std::filesystem::path& file, Access access);
  SqliteConnection(SqliteConnection&&) noexcept;
  SqliteConnection& operator=(SqliteConnection&&) noexcept;
  ~SqliteConnection();

  /// Runs statements without results, separated by semicolons.
  void run(const char* statements);
  /// One statement with places `?1`, `?2`, ...; the connection must outlive it.
  SqliteStatement prepare(std::string_view statement);
  /// Rows that the last statement changed.
  std::int64_t changes() const;
  static std::string_view version();  ///< of the library: "3.40.1"

 private:
  friend class SqliteStatement;
  struct State;
  std::unique_ptr<State> state_;
};

class SqliteStatement {
 public:
  SqliteStatement(SqliteStatement&&) noexcept;
  ~SqliteStatement();

  /// Gives a place its value; `text` is copied.
  SqliteStatement& bind(int place, std::string_view text);
  SqliteStatement& bind(int place, double number);
  /// Goes to the next row; false where there is none.
  bool step();
  /// A column of the row, counted from 0. Throws Error(invalid_file) where it is of another type.
  std::string text(int column) const;
  double number(int column) const;
  std::int64_t integer(int column) const;

 private:
  friend class SqliteConnection;
  struct State;
  explicit SqliteStatement(std::unique_ptr<State> state);
  void require_type(int column, int type, const char* expected) const;
  std::unique_ptr<State> state_;
};

}  // namespace cermet
