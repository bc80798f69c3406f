// Ctrl-C: the first one asks the verb to stop between two tokens, the second one ends the process.
#pragma once

#include <atomic>

namespace cermet::cli {

/// From now on the first SIGINT sets interrupted(); a second one before the next call kills the process as usual. Clears the flag.
void catch_interrupts();
/// Whether Ctrl-C was pressed: passed to loops that can stop.
const std::atomic<bool>& interrupted();
/// Throws Error(cancelled) when it was.
void stop_if_interrupted();

}  // namespace cermet::cli
