#include "base/log.hpp"

#include <spdlog/sinks/stdout_color_sinks.h>

#include "base/env.hpp"
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

void Log::write(LogLevel level, fmt::string_view format, fmt::format_args args) {
  const spdlog::level::level_enum at = spdlog_level(level);
  if (logger().should_log(at)) logger().log(at, fmt::vformat(format, args));
}

}  // namespace cermet
