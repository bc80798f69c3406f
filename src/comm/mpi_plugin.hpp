// MPI through the plugin libcermet_mpi.so, the only part that links an MPI library; opened where a launcher of MPI
// started this process.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/function_ref.hpp"
#include "kernel/communicator.hpp"

namespace cermet::comm {

/// Moves bytes between processes. Counts and offsets are in units of 1, 2, 4 or 8 bytes. Calls return when they are
/// done; until then they call `wait` now and then, which may throw: the transport is of no use after that, and its
/// memory must stay until the process ends.
class MpiTransport {
 public:
  using Wait = FunctionRef<void()>;
  virtual ~MpiTransport() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// y [size * count] = x [count] of all ranks.
  virtual void all_gather(const void* x, void* y, std::int64_t count, int unit, Wait wait) = 0;
  /// The same with y on `root` alone.
  virtual void gather(const void* x, void* y, std::int64_t count, int unit, int root, Wait wait) = 0;
  virtual void scatter(const void* x, void* y, std::int64_t count, int unit, int root, Wait wait) = 0;
  virtual void broadcast(void* x, std::int64_t count, int unit, int root, Wait wait) = 0;
  virtual void all_to_all(const void* x, void* y, std::int64_t count, int unit, Wait wait) = 0;
  /// One count for each rank; parts lie one after another.
  virtual void all_to_all_uneven(const void* x, const int* sent, void* y, const int* received, int unit, Wait wait) = 0;
  virtual std::unique_ptr<MpiTransport> split(int color, int key) = 0;
  /// Calls MPI no more, not even at the end: other processes may be gone.
  virtual void abandon() noexcept = 0;
};

/// What the plugin exports, as `const MpiInterface* cermet_mpi_plugin()`. Both sides come from one build: `build` says
/// so.
struct MpiInterface {
  const char* build;
  /// All processes; initializes MPI, which a process can do once, and finalizes it when the object goes.
  std::unique_ptr<MpiTransport> (*make_world)();
};

/// Engine "mpi": all processes that mpirun started. Throws Error(unsupported) with the loader's reason where the plugin
/// or its library is absent.
std::unique_ptr<Communicator> join_mpi_world();

}  // namespace cermet::comm
