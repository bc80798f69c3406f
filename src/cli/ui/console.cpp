#include "cli/ui/console.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/error.hpp"
#include "base/text.hpp"

namespace cermet::cli {
namespace {

/// Columns that a text takes, counting characters.
std::size_t width_of(std::string_view text) {
  std::size_t width = 0;
  for (; !text.empty(); ++width) text.remove_prefix(first_utf8_unit(text).size);
  return width;
}

std::string scaled(double value, double step, const auto& prefixes, std::string_view unit) {
  std::size_t prefix = 0;
  for (; std::abs(value) >= step && prefix + 1 < prefixes.size(); ++prefix) value /= step;
  const int digits = prefix == 0 && value == std::floor(value) ? 0 : std::abs(value) < 10 ? 2 : 1;
  return fmt::format("{:.{}f} {}{}", value, digits, prefixes[prefix], unit);
}

ConsoleSettings settings_of_process;

constexpr std::array<std::string_view, 5> si_prefixes{"", "k", "M", "G", "T"};

}  // namespace

void set_console(const ConsoleSettings& settings) { settings_of_process = settings; }

bool is_coloured(int descriptor) {
  if (settings_of_process.colour != Colour::automatic) return settings_of_process.colour == Colour::always;
  const char *const no_color = std::getenv("NO_COLOR"), *const terminal = std::getenv(
                                                            "TERM");  // no-color.org: any value but an empty one
  return isatty(descriptor) != 0 && (!no_color || !*no_color) && terminal && std::string_view(terminal) != "dumb";
}

void print_diagnostic(std::string_view kind, std::string_view line) {
  const bool coloured = is_coloured(STDERR_FILENO);
  const std::string_view on = !coloured         ? ""
                              : kind == "error" ? "\x1b[1;31m"
                                                : "\x1b[1;33m",
                         off = coloured ? "\x1b[0m" : "";
  fmt::print(stderr, "cermet: {}{}:{} {}\n", on, kind, off, line);
}

bool is_plain(std::string_view text) { return quote(text, text.size() + 8) == fmt::format("\"{}\"", text); }

void Console::write(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size())
    fail(Status::io, "standard output: expected room for the result, found: {}", std::strerror(errno));
}

void Console::write_json(const Json& value) { write(value.dump() + "\n"); }

void Console::note(std::string_view text) {
  if (!settings_of_process.quiet) std::fwrite(text.data(), 1, text.size(), stderr);
}

void Console::flush() {
  if (std::fflush(stdout) != 0)
    fail(Status::io, "standard output: expected room for the result, found: {}", std::strerror(errno));
}

bool is_progress_wanted() { return !settings_of_process.quiet && isatty(STDERR_FILENO) != 0; }

std::string one_line(std::string_view text) {
  std::string line(text);
  for (char& c : line)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return line;
}

std::string Table::to_string() const {
  std::vector<std::size_t> widths;
  for (const auto& cells : rows_) {
    widths.resize(std::max(widths.size(), cells.size()));
    for (std::size_t i = 0; i < cells.size(); ++i) widths[i] = std::max(widths[i], width_of(cells[i]));
  }
  std::string text;
  for (const auto& cells : rows_) {
    text += "  ";
    for (std::size_t i = 0; i < cells.size(); ++i) {
      text += cells[i];
      if (i + 1 < cells.size()) text.append(widths[i] - width_of(cells[i]) + 2, ' ');
    }
    text += '\n';
  }
  return text;
}

std::string bytes_text(double bytes) {
  static constexpr std::array<std::string_view, 5> prefixes{"", "Ki", "Mi", "Gi", "Ti"};
  return scaled(bytes, 1024, prefixes, "B");
}

std::string count_text(double count) {
  std::string text = scaled(count, 1000, si_prefixes, "");
  if (text.back() == ' ') text.pop_back();
  return text;
}

std::string amount_text(double amount, std::string_view unit) { return scaled(amount, 1000, si_prefixes, unit); }

std::string plural(std::int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string seconds_text(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.3g} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.3g} ms", seconds * 1e3);
  return fmt::format("{:.3g} s", seconds);
}

}  // namespace cermet::cli
