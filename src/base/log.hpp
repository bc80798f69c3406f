// The process's log: spdlog to standard error at the level of CERMET_LOG.
#pragma once

#include <spdlog/spdlog.h>

namespace cermet {

/// The one logger. Messages about a user's data go through Error, not through here.
spdlog::logger& log();

}  // namespace cermet
