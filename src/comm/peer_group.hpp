// GPUs of one host that address each other's memory: small messages without a library, in the order of ranks, and
// memory for kernels that exchange data.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "comm/call.hpp"
#include "comm/peer_routes.hpp"
#include "device/device.hpp"
#include "jit/program_store.hpp"
#include "kernel/cuda/peer_memory.hpp"

namespace cermet::comm {

class PeerGroup final : public cuda::PeerMemory {
 public:
  /// Every rank calls it. Memory is exchanged through `host`, which must outlive the group, as `device` must. Ranks may
  /// share a device: their launches take few thread blocks then, so that all are resident. `timeout`: seconds. Throws
  /// Error on every rank where some rank does not reach another's memory.
  PeerGroup(Communicator& host, Device& device, double timeout);
  PeerGroup(const PeerGroup&) = delete;
  PeerGroup& operator=(const PeerGroup&) = delete;

  /// Compiles and loads what a call of this kind and type launches.
  void prepare(const DenseCall& call) { prepare(std::span(&call, 1)); }
  void prepare(std::span<const DenseCall> calls);
  /// Enqueues a call that all ranks make.
  void run(const DenseCall& call, Stream& stream);
  peer::Link link(std::string_view what) override;
  int channels() const override { return channels_; }
  int ranks_on_device() const override { return ranks_on_device_; }
  double timeout() const override { return timeout_; }
  void line_up() override;

  /// What a launch that gave up said: "all_reduce of ..: exchange 17: rank 1 did not arrive within 30 s"; "" where none
  /// did. May be asked by another thread.
  std::string failure();
  /// Ends launches that wait, and those that come later. May be called by another thread.
  void abort() noexcept;
  void set_timeout(double seconds) { timeout_ = seconds; }         ///< of links from now on
  void set_routes(Routes routes) { routes_ = std::move(routes); }  ///< alike on every rank
  const Routes& routes() const { return routes_; }
  bool shares_device() const { return shares_device_; }

 private:
  struct Memory;
  std::uint32_t number_of(const CallHeader& header);
  peer::Link link_of(std::uint32_t call) const;
  void enqueue(const DenseCall& call, const cuda::Program& task, const void* params, std::uint32_t items,
               Stream& stream);

  Communicator& host_;
  int rank_, size_, channels_ = peer::most_channels;
  bool shares_device_ = false;  ///< of some ranks
  int ranks_on_device_ = 1;
  double timeout_;
  Routes routes_;
  ProgramStore programs_;
  std::vector<std::shared_ptr<Memory>> memory_;  ///< by rank
  DeviceBuffer board_;                           ///< of the host
  std::mutex mutex_;                             ///< of what follows
  std::vector<std::string> names_;               ///< of launches, by the number in their links
  std::vector<std::pair<CallHeader, std::uint32_t>> calls_;
};

}  // namespace cermet::comm
