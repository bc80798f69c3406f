// The host half of CUDA tasks: what to compile and how to enqueue it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/device.hpp"

namespace cermet::cuda {

/// A task with its configuration, compiled at run time to one function for one architecture. The task type has
///   struct Params                                                     plain data, passed by value
///   static __device__ void run(const Params&, uint32_t item, char* smem)
///   static __device__ void prefetch(const Params&, uint32_t item)     optional: touches only operands that no earlier task writes
///   static __device__ void start, finish(const Params&, uint32_t item, char* smem)    optional: the halves of run; start keeps to what prefetch may touch
/// and the generated wrapper loops over the items of its block.
struct Program {
  std::string header;  ///< below src/: "kernel/cuda/device/rowwise/rms_norm.cuh"
  std::string task;    ///< C++ type: "cermet::rms_norm::Task<{.hidden = 4096}>"
  int threads = 256;
  std::int64_t shared_bytes = 0;  ///< dynamic shared memory; 1024-byte aligned in the kernel
  int min_blocks = 1;             ///< blocks that must fit on an SM: caps registers
  int cluster = 1;
  bool may_spill = false;  ///< tests refuse spills otherwise
  /// One block per SM, which fetches weights while earlier launches run. In a graph every second launch of such
  /// programs takes more than half of an SM's shared memory: so two of them overlap, but never two blocks of one,
  /// whatever the order in which SMs become free. Others do not make up for an SM without a block: none takes more than
  /// 1/86 of the memory bandwidth.
  bool alternates = false;
  bool fallback = false;  ///< for launches whose addresses or strides do not suit the kernel's own programs: right, but slower; they are counted

  friend bool operator==(const Program&, const Program&) = default;
  friend auto operator<=>(const Program&, const Program&) = default;
};

/// A compiled and loaded program.
struct LoadedProgram {
  LoadedFunction loaded;
  int threads = 0, cluster = 1;
  std::int64_t shared_bytes = 0;
  bool alternates = false, fallback = false;
};

/// What a program is, for readers: "gemm/hopper".
std::string_view short_name(const Program& program);
/// The same programs as fallbacks.
std::vector<Program> as_fallbacks(std::vector<Program> programs);

/// Where a bound kernel enqueues its tasks: a stream and the kernel's loaded programs.
class TaskQueue {
 public:
  TaskQueue(Device& device, Stream& stream, std::span<const LoadedProgram> programs) : device_(&device), stream_(&stream), programs_(programs) {}

  /// Runs `items` work items of a program (its index in what the kernel's `programs` returned) over `blocks` thread blocks; 0 blocks: one for each item.
  template <class Params>
  void run(std::size_t program, std::int64_t items, const Params& params, std::int64_t blocks = 0) const {
    enqueue(program, items, blocks, const_cast<Params*>(&params));
  }
  /// The queue of a kernel inside this one, whose programs are `count` of these, from `first` on.
  TaskQueue part(std::size_t first, std::size_t count) const {
    TaskQueue inner(*device_, *stream_, programs_.subspan(first, count));
    inner.takes_half_ = takes_half_;
    inner.counter_ = &counter();
    return inner;
  }
  /// Launches of programs that alternate take more than half of an SM's shared memory from now on.
  void take_half() { takes_half_ = true; }
  /// Launches of fallbacks so far, those of inner queues included. A graph's count as they are captured, not as it is replayed.
  std::int64_t fallbacks() const { return counter(); }
  /// Thread blocks that are resident at once.
  std::int64_t resident_blocks(std::size_t program) const;
  Stream& stream() const { return *stream_; }
  Device& device() const { return *device_; }
  const Target& target() const { return *device_->target(); }

 private:
  void enqueue(std::size_t program, std::int64_t items, std::int64_t blocks, void* params) const;
  std::int64_t& counter() const { return counter_ ? *counter_ : fallbacks_; }

  Device* device_;
  Stream* stream_;
  std::span<const LoadedProgram> programs_;
  bool takes_half_ = false;
  mutable std::int64_t fallbacks_ = 0;
  std::int64_t* counter_ = nullptr;  ///< the outer queue's, while it runs a kernel inside its own
};

/// "Config{.x = DType::bf16}" is spelled with these.
std::string device_name(DType dtype);  ///< "cermet::DType::bf16"
inline const char* device_name(bool value) { return value ? "true" : "false"; }

}  // namespace cermet::cuda
