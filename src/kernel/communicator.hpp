// Ranks that compute together: what operators that communicate, and models that are split over ranks, see of a group of
// processes or threads. src/comm/ makes communicators; a graph's nodes name the one that they use (attribute `group`),
// and CompileOptions::groups gives it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/tensor.hpp"
#include "op/collective.hpp"
#include "op/reduction.hpp"

namespace cermet {

class Stream;
namespace cuda {
class PeerMemory;
}

/// One call of an operator that communicates, as the stacked operators define it (op/collectives.cpp): rank r gives
/// x[r] and gets y[r]. Every rank of the communicator makes the same call: kind, reduction, root, element type and
/// sizes are compared, and a rank that calls another thing is an error on all.
struct CollectiveCall {
  Collective kind = Collective::all_reduce;
  Reduction reduction = Reduction::sum;
  int root = 0;
  TensorView x;  ///< this rank's operand: [N, ..]. Ranks whose operand is not read (scatter_from, broadcast_from) give
                 ///< one of the same type nevertheless.
  /// This rank's result. May be the same memory as x for all_reduce, reduce_to and broadcast_from; may not overlap it
  /// otherwise.
  TensorView y;
  /// Of an uneven all_to_all, in host memory: [R, R], i32 or i64, alike on every rank.
  TensorView counts;
};

/// One rank's place in a group. Calls are collective: every rank makes them in the same order, from one thread at a
/// time. Every failure, of this rank or of another one, is an Error on every rank that names the rank it began with,
/// the operator and the number of the call; after it the communicator can only be destroyed. A rank that goes away
/// without failing, or is killed, is such a failure for those that wait for it.
class Communicator {
 public:
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  /// What carries the data: "local" (threads of one process), "shared" (processes of one host), "mpi", "nccl", "peer"
  /// (memory that GPUs of a host address), "peer+nccl", "null".
  virtual std::string_view engine() const = 0;
  /// Whether operands are in memory of a device, and calls are enqueued in a stream of it; in host memory otherwise,
  /// and calls return when they are done.
  virtual bool on_device() const { return false; }

  /// Memory that all ranks' devices address, for kernels that exchange data within a launch; null where there is none.
  virtual cuda::PeerMemory* peer_memory() { return nullptr; }

  /// Throws Error(invalid_argument) where this rank's own operands do not fit the call. `stream` is of the
  /// communicator's device, or null.
  virtual void run(const CollectiveCall& call, Stream* stream = nullptr) = 0;
  /// Compiles what calls of these types launch, at once; addresses of their operands are not read. Without it the first
  /// call of each type compiles.
  virtual void prepare(std::span<const CollectiveCall> /*calls*/) {}
  /// Returns when every rank has called it. On a device, the host waits; work in streams is not waited for.
  virtual void barrier() = 0;
  /// Every rank's `text`, in the order of ranks; at most 4096 bytes each. For sizes, seeds, names: on the host,
  /// whatever the engine.
  virtual std::vector<std::string> gather_text(std::string_view text) = 0;
  /// The ranks that give the same `color`, ordered by `key`, then by rank here: a communicator of their own. Every rank
  /// calls it.
  virtual std::unique_ptr<Communicator> split(int color, int key) = 0;
  /// Tells all ranks that this one cannot go on, so that they fail with the reason in place of waiting. For errors
  /// between calls; a failed call has done so.
  virtual void abort(std::string_view reason) noexcept = 0;
  /// Throws where the group has failed since the last call: on a device, what was enqueued fails later, and host
  /// threads that compute hear nothing else.
  virtual void check() = 0;
  /// Why the group cannot go on, as far as can be seen without waiting; "" where nothing is wrong. May be asked by
  /// another thread.
  virtual std::string failure() = 0;
  /// How long a call waits for other ranks before it fails, in seconds; CERMET_COMM_TIMEOUT where not set.
  virtual void set_timeout(double seconds) = 0;

  // What models call. Views are dense or have strided leading dimensions, as operands of kernels.
  void all_reduce(const TensorView& x, const TensorView& y, Reduction reduction = Reduction::sum,
                  Stream* stream = nullptr) {
    run({Collective::all_reduce, reduction, 0, x, y, {}}, stream);
  }
  /// y [R*N, ..] = the operands [N, ..] of all ranks, one after another.
  void all_gather(const TensorView& x, const TensorView& y, Stream* stream = nullptr) {
    run({Collective::all_gather, Reduction::sum, 0, x, y, {}}, stream);
  }
  /// In place: rank `root` gives, the others get.
  void broadcast(const TensorView& x, int root, Stream* stream = nullptr) {
    run({Collective::broadcast_from, Reduction::sum, root, x, x, {}}, stream);
  }
  /// Throws Error on every rank unless all give the same text; the message says who gave what: "model: expected that of
  /// rank 0, ..., found ... on rank 1".
  void require_same(std::string_view what, std::string_view text);

 protected:
  Communicator(int rank, int size) : rank_(rank), size_(size) {}

 private:
  int rank_, size_;
};

/// A communicator under the name that nodes of a graph give in their attribute `group`.
struct RankGroup {
  std::string name;
  Communicator* communicator = nullptr;
};

}  // namespace cermet
