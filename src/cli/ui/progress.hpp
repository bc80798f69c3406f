// A progress bar on standard error, drawn only where that is a terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace cermet::cli {

class Progress {
 public:
  /// Nothing is drawn before the first update.
  explicit Progress(std::string title);
  ~Progress();  ///< erases the bar
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  /// Work done out of the total, and a note after the bar. Draws at most 20 times a second.
  void update(std::int64_t done, std::int64_t total, const std::string& note = {});

 private:
  std::string title_;
  bool wanted_, drawn_ = false;
  std::chrono::steady_clock::time_point last_{};
};

}  // namespace cermet::cli
