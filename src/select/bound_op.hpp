// An operator bound to a kernel: validated once, then run many times on operands of the same types.
#pragma once

#include <vector>

#include "base/buffer.hpp"
#include "jit/program_store.hpp"
#include "select/select.hpp"

namespace cermet {

class BoundOp {
 public:
  /// Binds a region with constant dimensions to a kernel that does not decline it. A kernel for CUDA needs the queue,
  /// which must outlive the object.
  BoundOp(Region region, Choice choice, ThreadPool& pool, const DeviceQueue& queue = {});

  const Region& region() const { return region_; }
  /// The anchor's.
  const Problem& problem() const { return region_.problem(); }
  const Kernel& kernel() const { return *choice_.kernel; }
  const Config& config() const { return choice_.config; }
  std::int64_t workspace_bytes() const { return workspace_bytes_; }
  /// Launches that took a slower program (cuda::Program::fallback).
  std::int64_t fallbacks() const { return fallbacks_; }
  /// Packs a constant operand, in host memory, into the kernel's layout, on the device where the kernel runs; later
  /// runs use the copy. Another operand may be packed into its place later, on the CPU into the same memory. Operands
  /// without a layout are left alone.
  void prepack(std::size_t operand, const TensorView& weight);
  /// Computes, or on a device enqueues. Operands, in memory of the kernel's device, must have the types of the region;
  /// views may be strided in leading dimensions. `workspace` is 64-byte aligned memory of workspace_bytes(), or null to
  /// use this object's own. A CUDA kernel is enqueued on `stream`, or if null on the queue's.
  void run(std::span<const TensorView> inputs, std::span<const TensorView> outputs, std::byte* workspace = nullptr,
           Stream* stream = nullptr);

 private:
  std::byte* own_workspace(Stream* stream);

  Region region_;
  Choice choice_;
  ThreadPool* pool_;
  Launcher launch_;
  std::int64_t workspace_bytes_ = 0, fallbacks_ = 0;
  AlignedBuffer own_workspace_;
  std::vector<AlignedBuffer> packed_;
  DeviceQueue queue_;
  std::vector<cuda::LoadedProgram> programs_;
  Plan plan_;  ///< launches of a run on a device; reused between runs
  std::vector<DeviceBuffer> packed_on_device_;
  DeviceBuffer device_workspace_;
  std::vector<TensorView> operands_;  ///< reused between runs
};

/// Bytes of a packed weight: a stack of matrices of rank 3 at 64-byte steps, or one weight of another rank.
std::int64_t packed_bytes(const WeightLayout& layout, const TensorType& weight);
/// Packs a weight, or every matrix of one of rank 3.
void pack_weight(const WeightLayout& layout, const TensorView& weight, std::byte* destination, ThreadPool& pool);

}  // namespace cermet
