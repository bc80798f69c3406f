// measure_limits() that can be stopped.
#pragma once

#include "kernel/cpu/limits.hpp"

namespace cermet::cpu {

/// As measure_limits(pool, seconds), and calls `between` between two runs of some milliseconds each; what it throws
/// ends it.
Limits measure_limits(ThreadPool& pool, double seconds, void (*between)());

}  // namespace cermet::cpu
