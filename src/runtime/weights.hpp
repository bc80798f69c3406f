// Weights of a model in the layouts that kernels need: each is read once, packed once per layout and shared by all
// executables.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

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

class WeightStore {
 public:
  /// Weights live in memory of the queue's device; in the host's where there is none. The queue's device and stream
  /// must outlive the store.
  WeightStore(LoadWeight load, ThreadPool& pool, const DeviceQueue& queue = {})
      : load_(std::move(load)), pool_(&pool), queue_(queue) {}
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
  /// Frees memory that is kept between weights, once those of a graph are loaded.
  void clear_scratch() { scratch_.clear(); }

 private:
  LoadWeight load_;
  ThreadPool* pool_;
  struct StoredWeight {
    AlignedBuffer host;
    DeviceBuffer device;
    std::byte* data() const { return device.data() ? device.data() : host.data(); }
  };
  /// Pinned memory whose upload may still be in progress.
  struct Staging {
    DeviceBuffer memory;
    std::unique_ptr<DeviceEvent> uploaded;
  };
  TensorView get(const std::string& key, const std::string& name, const TensorType& type, const WeightLayout* layout,
                 const LoadWeight& load);
  StoredWeight load_host(const LoadWeight& load, const std::string& name, const TensorType& type,
                         const WeightLayout* layout);
  StoredWeight load_device(const LoadWeight& load, const std::string& name, const TensorType& type,
                           const WeightLayout* layout);
  Staging& next_staging(std::int64_t bytes);

  DeviceQueue queue_;
  Scratch scratch_;
  std::array<Staging, 2> staging_;
  std::size_t turn_ = 0;
  std::map<std::pair<std::string, std::string>, StoredWeight> weights_;
  std::int64_t bytes_ = 0;
};

}  // namespace cermet
