// Where an embedding program takes the log to.
#pragma once

#include <functional>

#include "base/log.hpp"

namespace cermet {

using LogSink = std::function<void(LogLevel level, const char* message)>;
/// Takes messages of `level` and above instead of standard error; an empty sink: standard error again. One call of a
/// sink at a time, and none of the one before after this returns.
void set_log_sink(LogSink sink, LogLevel level);

}  // namespace cermet
