#include "base/log.hpp"

#include <spdlog/sinks/stdout_color_sinks.h>

#include <mutex>

#include "base/env.hpp"
#include "base/log_sink.hpp"
#include "base/logger.hpp"

namespace cermet {
namespace {

spdlog::level::level_enum spdlog_level(LogLevel level) {
  switch (level) {
    case LogLevel::debug: return spdlog::level::debug;
    case LogLevel::info: return spdlog::level::info;
    case LogLevel::warn: return spdlog::level::warn;
    case LogLevel::error: return spdlog::level::err;
  }
  return spdlog::level::off;
}

/// What the embedding program gave.
struct OwnSink {
  std::mutex mutex;
  LogSink sink;
  LogLevel level = LogLevel::warn;
};

OwnSink& own_sink() {
  static OwnSink sink;
  return sink;
}

}  // namespace

spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> made = [] {
    auto fresh = std::make_shared<spdlog::logger>("cermet", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    fresh->set_level(spdlog::level::from_str(env::value(env::Name::CERMET_LOG)));
    fresh->set_pattern("cermet %l: %v");
    return fresh;
  }();
  return *made;
}

void set_log_sink(LogSink sink, LogLevel level) {
  const std::lock_guard lock(own_sink().mutex);
  own_sink().sink = std::move(sink);
  own_sink().level = level;
}

void Log::write(LogLevel level, fmt::string_view format, fmt::format_args args) {
  {
    OwnSink& own = own_sink();
    const std::lock_guard lock(own.mutex);
    if (own.sink) {
      if (level >= own.level) own.sink(level, fmt::vformat(format, args).c_str());
      return;
    }
  }
  const spdlog::level::level_enum at = spdlog_level(level);
  if (logger().should_log(at)) logger().log(at, fmt::vformat(format, args));
}

}  // namespace cermet
