// What writes the log: spdlog. For those who set its level or read what it writes; messages go through base/log.hpp.
#pragma once

#include <spdlog/spdlog.h>

namespace cermet {

/// The one logger.
spdlog::logger& logger();

}  // namespace cermet
