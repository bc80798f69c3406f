// Weights of a model in the forms that kernels want: each is read once, packed once per layout and shared by all executables.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/buffer.hpp"
#include "base/thread_pool.hpp"
#include "kernel/kernel.hpp"

namespace cermet {

/// Fills `destination` (dense) with the weight `name`. For rank-3 weights [E, N, K], slice e >= 0 asks for matrix e alone and the
/// destination is [N, K]; slice -1 asks for the whole tensor. Converts to the destination's element type. Throws Error naming the tensor.
using LoadWeight = std::function<void(const std::string& name, std::int64_t slice, const TensorView& destination)>;

class WeightStore {
 public:
  WeightStore(LoadWeight load, ThreadPool& pool) : load_(std::move(load)), pool_(&pool) {}

  /// The weight in a layout (null: plain row-major). Reads and packs it at the first call; later calls return the same memory.
  /// Staging memory never exceeds one matrix [N, K].
  TensorView get(const std::string& name, const TensorType& type, const WeightLayout* layout);
  std::int64_t bytes() const { return bytes_; }  ///< memory held

 private:
  LoadWeight load_;
  ThreadPool* pool_;
  std::map<std::pair<std::string, std::string>, std::pair<AlignedBuffer, TensorType>> held_;
  std::int64_t bytes_ = 0;
};

}  // namespace cermet
