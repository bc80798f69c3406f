// Operands and results to launch a region with, in several equal sets, so that no launch finds its operands in a cache.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "jit/program_store.hpp"
#include "kernel/kernel.hpp"
#include "select/tune/operands.hpp"

namespace cermet {

class OperandSets {
 public:
  /// Of a region with constant dimensions; constants lie as the kernel wants them. On a device where the queue has one,
  /// else in host memory. `region`, `pool` and the queue must outlive it.
  OperandSets(const Region& region, const Kernel& kernel, const DeviceQueue& queue, ThreadPool& pool,
              const OperandValues& values);

  std::int64_t set_bytes() const;
  std::int64_t count() const { return static_cast<std::int64_t>(views_.size()); }
  /// Makes `sets` of them. Values are drawn for the first ones, `most_drawn` bytes or one set, and copied for the
  /// others.
  void make(std::int64_t sets, std::int64_t most_drawn = std::int64_t{1} << 30);
  /// Draws set 0 again, where results lie in the memory of operands, and fills its other results with NaN or -1.
  void reset_first();

  std::span<const TensorView> inputs(std::int64_t set) const { return views_[static_cast<std::size_t>(set)].inputs; }
  std::span<const TensorView> outputs(std::int64_t set) const { return views_[static_cast<std::size_t>(set)].outputs; }

 private:
  struct Slice {
    std::int64_t offset = 0, bytes = 0;
  };
  struct Views {
    std::vector<TensorView> inputs, outputs;
  };
  const WeightLayout* layout_of(std::size_t i) const;
  Slice allocate(const TensorType& type, const WeightLayout* layout);
  TensorView view(std::int64_t set, const Slice& slice, const TensorType& type) const;
  std::byte* at(std::int64_t set, const Slice& slice) const { return base_ + set * set_bytes() + slice.offset; }
  void draw(std::int64_t sets);
  void pack(std::size_t i, std::int64_t sets);
  void copy(std::byte* to, const std::byte* from, std::int64_t bytes);

  const Region& region_;
  const Kernel& kernel_;
  DeviceQueue queue_;
  ThreadPool& pool_;
  OperandValues values_;
  std::vector<Slice> inputs_, outputs_;
  std::int64_t set_bytes_ = 0;
  DeviceBuffer device_memory_;
  AlignedBuffer host_memory_;
  std::byte* base_ = nullptr;
  std::vector<Views> views_;
};

}  // namespace cermet
