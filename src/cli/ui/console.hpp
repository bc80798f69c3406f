// Where a verb's results go: text or one JSON value on standard output; everything else on standard error.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/json_value.hpp"

namespace cermet::cli {

/// Keys keep the order in which they were set.
using Json = JsonValue;

class Console {
 public:
  explicit Console(bool json) : json_(json) {}
  /// Whether the verb prints JSON in place of text.
  bool json() const { return json_; }

  /// Writes to standard output.
  void write(std::string_view text);
  template <class... Args>
  void print(fmt::format_string<Args...> format, Args&&... args) {
    write(fmt::format(format, std::forward<Args>(args)...));
  }
  /// Writes one JSON value and a newline to standard output.
  void write_json(const Json& value);
  /// Writes to standard error, unless --quiet was given.
  void note(std::string_view text);
  /// Makes everything written so far visible. Throws Error(io) where standard output cannot take it (a full disk).
  void flush();

 private:
  bool json_;
};

enum class Colour { automatic, always, never };

/// --quiet and --color, for the whole process.
struct ConsoleSettings {
  bool quiet = false;
  Colour colour = Colour::automatic;
};
void set_console(const ConsoleSettings& settings);
/// Whether text on this descriptor is coloured: as --color says, or where it is a terminal and NO_COLOR is not set.
bool is_coloured(int descriptor);
/// "cermet: error: LINE" on standard error, or "cermet: warning: LINE".
void print_diagnostic(std::string_view kind, std::string_view line);
/// Whether standard error is a terminal, and --quiet was not given: only then are progress bars drawn.
bool is_progress_wanted();
/// Whether text is one line of valid UTF-8 without control bytes.
bool is_plain(std::string_view text);
/// Text as one line: control bytes and line breaks become spaces.
std::string one_line(std::string_view text);

/// Rows of cells as text with aligned columns, each row indented by two spaces.
class Table {
 public:
  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  bool empty() const { return rows_.empty(); }
  std::string to_string() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

/// "3.1 MiB": human-readable bytes.
std::string bytes_text(double bytes);
/// "12.3 G": a count with an SI prefix.
std::string count_text(double count);
/// "144 FLOP", "7.59 GB/s": the same with a unit.
std::string amount_text(double amount, std::string_view unit);
/// "1 token", "2 tokens".
std::string plural(std::int64_t count, std::string_view noun);
/// "1.24 ms": a human-readable duration.
std::string seconds_text(double seconds);

}  // namespace cermet::cli
