// Where things run: a device with a stream and loaded programs, and the host's threads. Made once, and shared by
// whatever runs there.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/thread_pool.hpp"
#include "device/allocating_device.hpp"
#include "jit/program_store.hpp"
#include "runtime/limits.hpp"

namespace cermet {

struct ContextOptions {
  std::string device = "cpu";                  ///< as make_device() takes it
  int threads = 0;                             ///< of the host, the caller's included; 0: one for each core
  std::shared_ptr<ThreadPool> pool = nullptr;  ///< threads that exist already, in place of `threads`
};

class Context {
 public:
  /// Throws Error naming the device that cannot be used, or a number of threads beyond 0 to 1024.
  explicit Context(const ContextOptions& options);
  Context(Context&&) noexcept = default;
  Context& operator=(Context&&) noexcept = default;
  /// The same device, programs, threads and limits with a stream of its own: for another thread, which may use it at
  /// the same time.
  Context with_own_stream() const { return Context(shared_); }

  const std::string& device_spec() const { return shared_->spec; }  ///< as it was asked for: "cuda:1"
  std::string description() const;  ///< "cpu (4 threads, avx512_bf16)", or the device's name
  Device& device() const { return *shared_->face; }
  const Target* target() const { return shared_->device->target(); }
  bool computes() const { return shared_->device->computes(); }
  ThreadPool& pool() const { return *shared_->pool; }
  /// What allocates memory of the device from here on, in all contexts that share it; without functions the device
  /// itself. Not to be called while another thread uses one of them.
  void set_allocator(const DeviceAllocator& allocator);
  Stream* stream() const { return stream_.get(); }  ///< null where the CPU's kernels run
  /// Where launches go; all null where the CPU's kernels run.
  DeviceQueue queue() const;

  /// What measure_limits() found; null before.
  const DeviceLimits* limits() const { return shared_->limits ? &*shared_->limits : nullptr; }
  /// Measures what the device can do at most, `seconds` for each figure at least. Throws Error where nothing is
  /// computed. Not to be called by two threads.
  const DeviceLimits& measure_limits(
      double seconds, void (*between)() = [] {});
  /// The same figures and more, not kept.
  MeasuredLimits measure_machine(
      double seconds, void (*between)() = [] {});
  cuda::Limits measure_gpu_limits(
      double seconds, void (*between)() = [] {});

 private:
  struct Shared {
    std::string spec;
    std::unique_ptr<Device> device;
    std::vector<std::unique_ptr<Device>> allocating;  ///< with the callers' allocators; sessions may have older ones
    Device* face = nullptr;                           ///< the last of them, or the device
    std::shared_ptr<ThreadPool> pool;
    std::optional<ProgramStore> programs;  ///< of a device with a target
    std::optional<DeviceLimits> limits;
  };
  explicit Context(std::shared_ptr<Shared> shared);

  std::shared_ptr<Shared> shared_;
  std::unique_ptr<Stream> stream_;
};

}  // namespace cermet
