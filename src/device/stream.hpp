// An in-order queue of a device: copies, launches, captured graphs and events.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/dtype.hpp"

namespace cermet {

/// A loaded device function; lives as long as the module that holds it.
struct DeviceFunction {
  void* handle = nullptr;
};

struct LaunchShape {
  std::uint32_t blocks = 1, threads = 1, shared_bytes = 0;
  std::uint32_t cluster = 1;       ///< blocks of a cluster
  bool overlaps_previous = false;  ///< may start before the previous launch ends, because the function waits for it
                                   ///< (programmatic dependent launch)
  std::uint32_t blocks_y = 1, blocks_z = 1, threads_y = 1, threads_z = 1;  ///< of functions that are no tasks
  bool together = false;  ///< all blocks run at the same time, or none starts (cooperative launch)
};

/// Launches captured once, to be replayed with the same operands.
class CapturedGraph {
 public:
  virtual ~CapturedGraph() = default;
  virtual std::int64_t nodes() const = 0;
};

/// A point in a stream's order with a time.
class DeviceEvent {
 public:
  virtual ~DeviceEvent() = default;
};

/// y[m, n] = x[m, k] * w[n, k]^T (+ bias[n]) by the vendor library. Leading dimensions in elements.
struct MatrixProduct {
  const void* x = nullptr;
  const void* w = nullptr;
  const void* bias = nullptr;  ///< of the result's type; may be null
  void* y = nullptr;
  std::int64_t m = 0, n = 0, k = 0, x_stride = 0, w_stride = 0, y_stride = 0;
  DType operand = DType::bf16, result = DType::bf16;
  void* workspace = nullptr;
  std::int64_t workspace_bytes = 0;
};

/// All calls are asynchronous except synchronize() and copies from or to pageable host memory. Every member throws
/// Error when the device reports one.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual void upload(void* device, const void* host, std::int64_t bytes) = 0;
  virtual void download(void* host, const void* device, std::int64_t bytes) = 0;
  virtual void copy(void* to, const void* from, std::int64_t bytes) = 0;  ///< within the device
  virtual void fill(void* device, unsigned char value, std::int64_t bytes) = 0;
  virtual void synchronize() = 0;

  /// `parameters` points to the addresses of the function's parameters, which are copied.
  virtual void launch(const LaunchShape& shape, DeviceFunction function, void** parameters) = 0;
  virtual void multiply(const MatrixProduct& product) = 0;
  virtual void begin_capture() = 0;
  virtual std::unique_ptr<CapturedGraph> end_capture() = 0;
  /// Ends a failed capture, so that the stream is usable again.
  virtual void abandon_capture() noexcept = 0;
  /// Whether work on the stream is being captured, by whomever.
  virtual bool is_capturing() const { return false; }
  virtual void replay(const CapturedGraph& graph) = 0;

  virtual std::unique_ptr<DeviceEvent> make_event() = 0;
  virtual void record(DeviceEvent& event) = 0;
  virtual void wait(const DeviceEvent& event) = 0;               ///< later work of this stream starts after the event
  virtual void synchronize_event(const DeviceEvent& event) = 0;  ///< waits on the host
  /// Seconds between two recorded events that have both happened.
  virtual double seconds_between(const DeviceEvent& start, const DeviceEvent& end) = 0;

  /// The backend's own, for its libraries: a CUstream.
  virtual void* native_handle() const { return nullptr; }

  /// Names what this thread enqueues until the end, for a profiler that listens (NVTX); costs a few nanoseconds where
  /// none does.
  virtual void begin_range(const char*) {}
  virtual void end_range() noexcept {}
};

/// A named range while it lives; nothing where there is no stream.
class StreamRange {
 public:
  StreamRange(Stream* stream, const char* name) : stream_(stream) {
    if (stream_) stream_->begin_range(name);
  }
  ~StreamRange() {
    if (stream_) stream_->end_range();
  }
  StreamRange(const StreamRange&) = delete;
  StreamRange& operator=(const StreamRange&) = delete;

 private:
  Stream* stream_;
};

}  // namespace cermet
