// Ctrl-C: the first one asks the verb to stop between two tokens, the second one ends the process.
#pragma once

#include <atomic>

namespace cermet::cli {

/// From now on the first SIGINT sets interrupted(), and ends the process with exit code 130 where the verb has not
/// stopped a second later; a second one before the next call kills the process as usual. Clears the flag.
void catch_interrupts();
/// The same; json: whether the end is reported as JSON, too.
void catch_interrupts(bool json);
/// The verb polls interrupted() and must not be ended by another thread: it has files to remove or to complete, or goes
/// on after Ctrl-C.
void stop_at_own_pace();
/// Whether Ctrl-C was pressed: passed to loops that can stop.
const std::atomic<bool>& interrupted();
/// Throws Error(cancelled) when it was.
void stop_if_interrupted();

}  // namespace cermet::cli
