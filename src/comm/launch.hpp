// Starts the processes of a run on this host and looks after them.
#pragma once

#include <string>
#include <vector>

namespace cermet::comm {

struct LaunchOptions {
  int ranks = 1;
  std::vector<std::string> command;  ///< a program, looked up in PATH where it has no slash, and its arguments
  double grace = 3;                  ///< seconds that the others have to end by themselves once one has failed
};

/// How a run ended: as its first rank that failed did.
struct LaunchResult {
  int rank = -1;          ///< that failed; -1 where none did
  int code = 0;           ///< its exit code; 0 where a signal ended it
  int signal = 0;         ///< that ended it
  int passed_on = 0;      ///< SIGINT or SIGTERM where one stopped the run; the others then say little
  bool reported = false;  ///< rank 0 failed with an exit code, after it reported why on both its outputs
};

/// Runs `ranks` processes with RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, CERMET_JOB and, where it is
/// not set, a share of the cores as CERMET_THREADS. Rank 0 has this process's input and outputs; what the others write
/// to standard error comes out with "[rank 2] " before each line, and their standard output is dropped. When one fails,
/// the others are ended after the grace; they also end when this process does. SIGINT and SIGTERM are passed on to all
/// of them, once; those that run on are killed after the grace. Returns when all have ended. Throws Error(io) where the
/// program cannot be started.
LaunchResult launch(const LaunchOptions& options);

}  // namespace cermet::comm
