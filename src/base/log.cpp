#include "base/log.hpp"

#include <spdlog/sinks/stdout_color_sinks.h>

#include "base/env.hpp"

namespace cermet {

spdlog::logger& log() {
  static const std::shared_ptr<spdlog::logger> logger = [] {
    auto made = std::make_shared<spdlog::logger>("cermet", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    made->set_level(spdlog::level::from_str(env::value(env::Name::CERMET_LOG)));
    made->set_pattern("cermet %l: %v");
    return made;
  }();
  return *logger;
}

}  // namespace cermet
