// Weights of a model in the layouts that kernels need: each is read once, packed once per layout and shared by all
// executables.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/buffer.hpp"
#include "base/scratch.hpp"
#include "base/thread_pool.hpp"
#include "graph/graph.hpp"
#include "jit/program_store.hpp"
#include "kernel/kernel.hpp"

namespace cermet {

/// Fills `destination` (dense) with the weight `name`. For rank-3 weights [E, N, K], slice e >= 0 asks for matrix e
/// alone and the destination is [N, K]; slice -1 asks for the whole tensor. Converts to the destination's element type.
/// Throws Error naming the tensor.
using LoadWeight = std::function<void(const std::string& name, std::int64_t slice, const TensorView& destination)>;
/// Memory where a weight is already, dense and row-major, in the store's place, until the weight is replaced; a view
/// that is not present where there is none.
using BorrowWeight = std::function<TensorView(const std::string& name)>;

class WeightStore {
 public:
  /// Weights live in memory of the queue's device; in the host's where there is none, which `host`, where given,
  /// allocates. The queue's device and stream, and the host, must outlive the store.
  WeightStore(LoadWeight load, ThreadPool& pool, const DeviceQueue& queue = {}, Device* host = nullptr)
      : load_(std::move(load)), pool_(&pool), queue_(queue), host_(host) {}
  ~WeightStore();
  WeightStore(const WeightStore&) = delete;
  WeightStore& operator=(const WeightStore&) = delete;

  /// The weight in a layout (null: plain row-major). Reads and packs it at the first call; later calls return the same
  /// memory. Staging memory never exceeds one matrix [N, K]; for a device, two, because one is uploaded while the next
  /// is read.
  TensorView get(const std::string& name, const TensorType& type, const WeightLayout* layout);
  /// The same of a constant of a graph, which may hold its elements or an expression on other constants; equal ones of
  /// several graphs are one.
  TensorView get(const Graph& graph, ValueId constant, const WeightLayout* layout);
  std::int64_t bytes() const { return bytes_; }  ///< memory held
  /// Lets row-major weights be read where they are.
  void set_borrow(BorrowWeight borrow) { borrow_ = std::move(borrow); }
  /// A weight has other elements, or other memory, of the same type. What was packed or computed of it is made anew,
  /// in its place, when it is asked for the next time; no run that reads it may be in progress then.
  void replace(const std::string& name);
  /// Counts replacements: what get() returned holds as long as it does not change.
  std::uint64_t version() const { return version_; }
  /// Waits until the weights are where get() said.
  void wait() const;
  /// Frees memory that is kept between weights, once those of a graph are loaded.
  void clear_scratch() { scratch_.clear(); }

 private:
  LoadWeight load_;
  ThreadPool* pool_;
  struct StoredWeight {
    AlignedBuffer host;
    DeviceBuffer device;
    std::vector<std::string> from = {};  ///< names of the weights that it was made of
    bool stale = false;                  ///< one of them was replaced
    std::byte* data() const { return device.data() ? device.data() : host.data(); }
  };
  /// Pinned memory whose upload may still be in progress.
  struct Staging {
    DeviceBuffer memory;
    std::unique_ptr<DeviceEvent> uploaded;
  };
  TensorView get(const std::string& key, const std::string& name, const TensorType& type, const WeightLayout* layout,
                 const LoadWeight& load, std::vector<std::string> from);
  StoredWeight allocate(const TensorType& type, const WeightLayout* layout) const;
  void fill_host(const LoadWeight& load, const std::string& name, const TensorType& type, const WeightLayout* layout,
                 std::byte* destination);
  void fill_device(const LoadWeight& load, const std::string& name, const TensorType& type, const WeightLayout* layout,
                   std::byte* destination);
  Staging& next_staging(std::int64_t bytes);

  DeviceQueue queue_;
  Device* host_;
  BorrowWeight borrow_;
  std::uint64_t version_ = 0;
  Scratch scratch_;
  std::array<Staging, 2> staging_;
  std::size_t turn_ = 0;
  std::map<std::pair<std::string, std::string>, StoredWeight> weights_;
  std::int64_t bytes_ = 0;
};

}  // namespace cermet
