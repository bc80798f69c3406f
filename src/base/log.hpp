// The process's log, to standard error at the level of CERMET_LOG. The library behind it is seen by base/logger.hpp
// alone: its headers take longer to compile than most files that log.
#pragma once

#include <fmt/core.h>

#include <utility>

namespace cermet {

enum class LogLevel { debug, info, warn, error };

/// Messages about a user's data go through Error, not through here.
class Log {
 public:
  template <class... Args>
  void debug(fmt::format_string<Args...> format, Args&&... args) const {
    write(LogLevel::debug, format, fmt::make_format_args(args...));
  }
  template <class... Args>
  void info(fmt::format_string<Args...> format, Args&&... args) const {
    write(LogLevel::info, format, fmt::make_format_args(args...));
  }
  template <class... Args>
  void warn(fmt::format_string<Args...> format, Args&&... args) const {
    write(LogLevel::warn, format, fmt::make_format_args(args...));
  }
  template <class... Args>
  void error(fmt::format_string<Args...> format, Args&&... args) const {
    write(LogLevel::error, format, fmt::make_format_args(args...));
  }

 private:
  static void write(LogLevel level, fmt::string_view format, fmt::format_args args);
};

/// The one log.
inline Log log() { return {}; }

}  // namespace cermet
