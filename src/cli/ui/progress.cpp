#include "cli/ui/progress.hpp"

#include <fmt/format.h>

#include <cstdio>

#include "cli/ui/console.hpp"

namespace cermet::cli {

Progress::Progress(std::string title) : title_(std::move(title)), wanted_(is_progress_wanted()) {}

Progress::~Progress() {
  if (drawn_) fmt::print(stderr, "\r\x1b[K");
}

void Progress::update(std::int64_t done, std::int64_t total, const std::string& note) {
  const auto now = std::chrono::steady_clock::now();
  if (!wanted_ || total <= 0 || (drawn_ && now - last_ < std::chrono::milliseconds(50))) return;
  constexpr std::int64_t width = 32;
  const std::int64_t filled = static_cast<std::int64_t>(static_cast<double>(done) / static_cast<double>(total) * width);
  std::string bar;
  for (std::int64_t i = 0; i < width; ++i) bar += i < filled ? "━" : "─";
  fmt::print(stderr, "\r\x1b[K{} {} {:3.0f} % {}", title_, bar,
             100.0 * static_cast<double>(done) / static_cast<double>(total), note);
  std::fflush(stderr);
  drawn_ = true;
  last_ = now;
}

}  // namespace cermet::cli
